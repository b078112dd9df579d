// libFuzzer over the reader of tool calls: whatever an answer is, it is read alike in one piece and byte by
// byte, and the rest is emitted as text.
#include <cstdlib>
#include <string>

#include "chat/tool_calls.h"

namespace {

using namespace gimbal;

std::string read(ToolCallFormat format, std::string_view answer, size_t bytes) {
  ToolCallSplitter splitter(format);
  std::string out;
  const auto add = [&](const ToolCallSplitter::Pieces& pieces) {
    for (const auto& p : pieces)
      out += p.kind == ToolCallSplitter::Piece::Call ? "\1" + p.call.name + "\2" + p.call.arguments + "\3"
                                                     : p.text;
  };
  for (size_t at = 0; at < answer.size(); at += bytes) add(splitter.push(answer.substr(at, bytes)));
  add(splitter.finish());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr std::string_view kTemplates[] = {"<tool_call>",
                                             "[TOOL_CALLS]",
                                             "<|tool_list_start|>",
                                             "<|python_tag|> \"parameters\"",
                                             "<|START_ACTION|>",
                                             "<|channel|> to=functions.",
                                             "<\xef\xbd\x9ctool\xe2\x96\x81"
                                             "call\xe2\x96\x81"
                                             "begin\xef\xbd\x9c>"};
  const ToolCallFormat format = ToolCallFormat::of(kTemplates[data[0] % std::size(kTemplates)]);
  const std::string_view answer(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (read(format, answer, 1) != read(format, answer, answer.size() + 1)) std::abort();
  (void)parse_tool_calls(answer);
  return 0;
}
