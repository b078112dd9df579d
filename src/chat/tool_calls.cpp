#include "chat/tool_calls.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace gimbal {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

// DeepSeek's marks are full-width bars and blocks; around all calls stand two more.
constexpr std::string_view kCall =
                               "<\xef\xbd\x9ctool\xe2\x96\x81"
                               "call\xe2\x96\x81"
                               "begin\xef\xbd\x9c>",
                           kCallEnd =
                               "<\xef\xbd\x9ctool\xe2\x96\x81"
                               "call\xe2\x96\x81"
                               "end\xef\xbd\x9c>",
                           kCallsBegin =
                               "<\xef\xbd\x9ctool\xe2\x96\x81"
                               "calls\xe2\x96\x81"
                               "begin\xef\xbd\x9c>",
                           kCallsEnd =
                               "<\xef\xbd\x9ctool\xe2\x96\x81"
                               "calls\xe2\x96\x81"
                               "end\xef\xbd\x9c>";

struct Marks {
  std::string_view begin, end;
};
// In the order in which they are looked for: some templates name several.
constexpr Marks kMarks[] = {
    {"<|tool_call_start|>", "<|tool_call_end|>"},  // LFM2
    {kCall, kCallEnd},                             // DeepSeek
    {"<|START_ACTION|>", "<|END_ACTION|>"},        // Command R7B
    {"[TOOL_CALLS]", ""},                          // Mistral
    {"<|tool_call|>", ""},                         // Granite 3
    {"<tool_call>", "</tool_call>"},               // Hermes, Qwen, GLM, Granite 4
    {"<|python_tag|>", ""},                        // Llama 3 with built-in tools
};

// How many bytes at the end of `text` may be the beginning of `mark`.
size_t begun(std::string_view text, std::string_view mark) {
  size_t n = std::min(text.size(), mark.size() - 1);
  while (n > 0 && !mark.starts_with(text.substr(text.size() - n))) n--;
  return n;
}

}  // namespace

ToolCallFormat ToolCallFormat::of(std::string_view source) {
  const auto has = [&](std::string_view word) { return source.find(word) != source.npos; };
  // OpenAI's template joins the address from "to=" and "functions.".
  if (has("<|channel|>") && has("to=") && has("functions.")) return {Kind::Harmony};
  // Llama 3.1 may call built-in tools behind its mark, and calls those of a request in bare JSON.
  if (has("\"parameters\": dictionary of argument name") || (has("<|python_tag|>") && has("\"parameters\"")))
    return {Kind::Bare};
  if (has("<|tool_list_start|>")) return {Kind::Marked, kMarks[0].begin, kMarks[0].end};
  for (const Marks& m : kMarks)
    if (has(m.begin))
      return m.begin == kCall ? ToolCallFormat{Kind::Marked, m.begin, m.end, kCallsBegin, kCallsEnd}
                              : ToolCallFormat{Kind::Marked, m.begin, m.end};
  return {};
}

// Space at the end waits: between an answer and a call, and between calls, it is not part of the text.
void ToolCallSplitter::text(Pieces& to, std::string_view s) {
  const size_t end = s.find_last_not_of(kBlank) + 1;
  if (end > 0) {
    answered_ = true;
    if (to.empty() || to.back().kind != Piece::Text) to.push_back({Piece::Text, ""});
    to.back().text += std::exchange(blank_, {});
    to.back().text += s.substr(0, end);
  }
  blank_ += s.substr(end);
}

// `all`: the body with its marks.
void ToolCallSplitter::take_body(Pieces& to, std::string_view body, std::string_view all) {
  auto found = parse_tool_calls(body);
  const auto may_be_called = [&](const ToolCall& call) {
    return instead_.empty() || std::find(instead_.begin(), instead_.end(), call.name) != instead_.end();
  };
  if (!found || found->empty() || text_alone() || !std::all_of(found->begin(), found->end(), may_be_called))
    return text(to, all);
  blank_.clear();
  for (ToolCall& call : *found) to.push_back({Piece::Call, "", std::move(call)}), calls_++;
}

ToolCallSplitter::Pieces ToolCallSplitter::push(std::string_view piece) {
  Pieces out;
  switch (format_.kind) {
    case ToolCallFormat::Kind::None: text(out, piece); break;
    case ToolCallFormat::Kind::Marked:
      held_ += piece;
      split(out);
      break;
    case ToolCallFormat::Kind::Bare: {
      held_ += piece;
      // Held as long as it may be a call: an object whose first key is one of a call.
      const std::string_view s = trimmed(held_);
      const std::string_view key = s.empty() ? s : trimmed(s.substr(1));
      const auto may_be = [&](std::string_view word) { return word.starts_with(key.substr(0, word.size())); };
      const bool call =
          !answered_ && (s.empty() || (s[0] == '{' && (may_be("\"name\"") || may_be("\"type\""))));
      if (call || (s.empty() && !answered_)) break;
      text(out, held_);
      held_.clear();
      break;
    }
    case ToolCallFormat::Kind::Harmony:
      if (header_) before_.push_back({Piece::Text, std::string(piece)});
      else if (inside_) held_ += piece;
      else text(out, piece);
  }
  return out;
}

void ToolCallSplitter::split(Pieces& to) {
  for (;;) {
    if (text_alone()) {
      text(to, std::exchange(held_, {}));
      inside_ = false;
      return;
    }
    const std::string_view s = held_;
    if (!inside_) {
      std::string_view mark;  // the first one
      size_t at = s.npos, keep = 0;
      for (std::string_view m : {format_.begin, format_.all_begin, format_.all_end}) {
        if (m.empty()) continue;
        if (const size_t found = s.find(m); found < at) at = found, mark = m;
        keep = std::max(keep, begun(s, m));
      }
      if (at == s.npos) {
        text(to, s.substr(0, s.size() - keep));
        held_.erase(0, s.size() - keep);
        return;
      }
      text(to, s.substr(0, at));
      if (text_alone()) {
        held_.erase(0, at);
        continue;
      }
      inside_ = mark == format_.begin;
      held_.erase(0, inside_ ? at : at + mark.size());
      continue;
    }
    // held_ begins with the mark.
    const std::string_view until = format_.end.empty() ? format_.begin : format_.end;
    const size_t end = s.find(until, format_.begin.size());
    if (end == s.npos) return;
    const size_t whole = end + format_.end.size();
    take_body(to, s.substr(format_.begin.size(), end - format_.begin.size()), s.substr(0, whole));
    held_.erase(0, whole);
    inside_ = false;
  }
}

ToolCallSplitter::Pieces ToolCallSplitter::control(std::string_view name) {
  Pieces out;
  if (format_.kind == ToolCallFormat::Kind::Harmony) {
    message(out, name);
    return out;
  }
  if (format_.kind == ToolCallFormat::Kind::Marked &&
      (name == format_.begin || name == format_.end || name == format_.all_begin || name == format_.all_end ||
       (inside_ && name.find("sep") != name.npos)))
    return push(name);
  // The beginning of a mark does not continue behind another token.
  if (format_.kind == ToolCallFormat::Kind::Marked && !inside_) text(out, std::exchange(held_, {}));
  if (!blank_.empty()) out.push_back({Piece::Text, std::exchange(blank_, {})});
  out.push_back({Piece::Control, std::string(name)});
  return out;
}

// A control token of gpt-oss: <|start|>role to=functions.x<|channel|>commentary<|message|>body<|call|>, or
// with the address behind the channel. A control token ends the function's name.
void ToolCallSplitter::message(Pieces& to, std::string_view name) {
  constexpr std::string_view kTo = "to=functions.";
  std::string header;
  for (const Piece& p : before_) header += p.text;
  const size_t addressed = header.find(kTo);
  if (inside_) {  // the body of a call ends
    const std::string body = std::exchange(held_, {}), function = header.substr(addressed + kTo.size());
    to.push_back({Piece::Call,
                  "",
                  {function.substr(0, function.find_first_of("< \t\r\n")), std::string(trimmed(body))}});
    calls_++;
    before_.clear();
    inside_ = false, header_ = true;
    if (name != "<|start|>") return;
  }
  before_.push_back({Piece::Control, std::string(name)});
  if (name == "<|start|>" || name == "<|channel|>") header_ = true;
  if (name == "<|message|>") {
    header_ = false;
    inside_ = addressed != header.npos;
    if (inside_) return;
  } else if (header_ && name != "<|end|>" && name != "<|return|>") {
    return;
  }
  if (!blank_.empty()) to.push_back({Piece::Text, std::exchange(blank_, {})});
  for (Piece& p : before_) to.push_back(std::move(p));
  before_.clear();
}

ToolCallSplitter::Pieces ToolCallSplitter::finish() {
  Pieces out;
  if (format_.kind == ToolCallFormat::Kind::Harmony) {
    // The token that ends a call also ends the answer, and is not reported.
    if (inside_) message(out, "<|call|>");
    if (!blank_.empty()) out.push_back({Piece::Text, std::exchange(blank_, {})});
    for (Piece& p : before_) out.push_back(std::move(p));
    return out;
  }
  const std::string rest = std::exchange(held_, {});
  if (inside_) take_body(out, std::string_view(rest).substr(format_.begin.size()), rest);
  else if (format_.kind == ToolCallFormat::Kind::Bare && !answered_ && !trimmed(rest).empty())
    take_body(out, rest, rest);
  else text(out, rest);
  return out;
}

}  // namespace gimbal
