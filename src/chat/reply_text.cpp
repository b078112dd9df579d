#include "chat/reply_text.h"

namespace gimbal {
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
