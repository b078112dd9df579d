// A whole answer as text, split into content, reasoning and tool calls.
#pragma once
#include <string_view>

#include "chat/reply_parser.h"

namespace gimbal {

// `inside`: the answer begins within the reasoning. The control tokens that divide messages (gpt-oss) count
// where they stand in the text, as a model's output has them.
ReplyParser::Part parse_reply(std::string_view text, const ToolCallFormat&, bool inside);

}  // namespace gimbal
