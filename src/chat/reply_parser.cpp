#include "chat/reply_parser.h"

#include <utility>

namespace gimbal {

// Parses the prompt's end without reporting it. Text before a bare call, or before a call that must be
// first, does not belong to the call.
ReplyParser::ReplyParser(const Tokenizer& tokenizer, const ChatTask& task)
    : tokenizer_(tokenizer),
      splits_calls_(task.form.calls.has_value()),
      one_call_(task.one_call),
      keeps_reasoning_(task.keeps_reasoning),
      reasoning_(task.opens_reasoning, task.continues),
      call_splitter_(task.form.calls.value_or(ToolCallFormat{}), task.form.instead) {
  using Kind = ToolCallFormat::Kind;
  const Kind kind = splits_calls_ ? task.form.calls->kind : Kind::None;
  const bool bare = kind == Kind::Bare || (kind == Kind::Marked && !task.form.instead.empty());
  for (Token t : task.begun) {
    Part none;
    const bool control = tokenizer.is_control(t);
    const std::string text = tokenizer.piece(t, control);
    if (!bare) take(control ? "" : text, t, none);
    else if (control) reasoning_.control(text);
    else reasoning_.push(text);
  }
}

void ReplyParser::end_marks(Part& to) {
  if (std::exchange(between_marks_, false)) to.text += "</think>\n\n";
}

void ReplyParser::add(ReasoningSplitter::Part part, Part& to) {
  if (!keeps_reasoning_) {
    to.reasoning += part.reasoning;
    to.text += part.answer;
    return;
  }
  if (!part.reasoning.empty()) {
    if (!std::exchange(between_marks_, true)) to.text += "<think>";
    to.text += part.reasoning;
  }
  if (!part.answer.empty()) end_marks(to);
  to.text += part.answer;
}

void ReplyParser::pass(ToolCallSplitter::Pieces pieces, Part& to) {
  for (auto& p : pieces) {
    if (p.kind == ToolCallSplitter::Piece::Text) add(reasoning_.push(p.text), to);
    else if (p.kind == ToolCallSplitter::Piece::Control) add(reasoning_.control(p.text), to);
    else end_marks(to), to.calls.push_back(std::move(p.call));
  }
}

// Tool calls first: the text between them is answer and reasoning.
void ReplyParser::take(std::string_view text, Token token, Part& to) {
  if (splits_calls_) pass(call_splitter_.push(text), to);
  else add(reasoning_.push(text), to);
  if (token < 0 || !tokenizer_.is_control(token)) return;
  const std::string name = tokenizer_.piece(token, true);
  if (splits_calls_) pass(call_splitter_.control(name), to);
  else add(reasoning_.control(name), to);
}

ReplyParser::Part& ReplyParser::counted(Part& part) {
  if (one_call_ && calls_ + part.calls.size() > 1) part.calls.resize(calls_ ? 0 : 1);
  calls_ += part.calls.size();
  return part;
}

ReplyParser::Part ReplyParser::push(std::string_view text, Token token) {
  Part to;
  take(enough() ? "" : text, token, to);
  return counted(to);
}

ReplyParser::Part ReplyParser::finish(std::string_view text) {
  Part to;
  take(enough() ? "" : text, -1, to);
  if (splits_calls_) pass(call_splitter_.finish(), to);
  add(reasoning_.finish(), to);
  return counted(to);
}

namespace {

constexpr std::string_view kControls[] = {"<|start|>",  "<|channel|>",   "<|message|>", "<|end|>",
                                          "<|return|>", "<|constrain|>", "<|call|>"};

std::string_view control_at(std::string_view text) {
  for (std::string_view c : kControls)
    if (text.starts_with(c)) return c;
  return {};
}

}  // namespace

ReplyParser::Part parse_reply(std::string_view text, const ToolCallFormat& format, bool inside) {
  using Piece = ToolCallSplitter::Piece;
  ReasoningSplitter reasoning(inside);
  ToolCallSplitter calls(format);
  ReplyParser::Part to;
  const auto add = [&](const ReasoningSplitter::Part& part) {
    to.reasoning += part.reasoning;
    to.text += part.answer;
  };
  const auto pass = [&](ToolCallSplitter::Pieces pieces) {
    for (Piece& p : pieces)
      if (p.kind == Piece::Text) add(reasoning.push(p.text));
      else if (p.kind == Piece::Control) add(reasoning.control(p.text));
      else to.calls.push_back(std::move(p.call));
  };
  while (!text.empty()) {
    const std::string_view control = control_at(text);
    const size_t next = control.empty() ? text.find("<|", 1) : control.size();
    pass(control.empty() ? calls.push(text.substr(0, next)) : calls.control(control));
    text.remove_prefix(std::min(next, text.size()));
  }
  pass(calls.finish());
  add(reasoning.finish());
  return to;
}

}  // namespace gimbal
