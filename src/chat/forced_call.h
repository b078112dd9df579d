// Answers that must be a tool call, or that may be calls in place of a required form. Supplies the prompt's
// end, in the style of the model's family, and a grammar of the remainder.
#pragma once
#include <span>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "chat/tool_calls.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

struct CallableTool {
  std::string_view name;
  const Json* parameters;  // a JSON schema of an object
};

struct ForcedCall {
  ToolCallFormat format;  // parses the answer, with `begin` prepended
  std::string begin;      // the answer's beginning, including control tokens as text
  std::string grammar;    // GBNF
};

// Exactly one call of one of the tools (at least one tool). If a grammar cannot express the family's own
// form (control tokens within a call), the call is a JSON object between the family's marks, which
// ToolCallSplitter also parses. Errors: Usage, naming the tool: an unsupported schema, or not one of an
// object; an invalid name.
Result<ForcedCall> forced_call(const ToolCallFormat& format, std::span<const CallableTool> tools);

// An answer that matches `form` (GBNF), or consists of calls; at most one if `one_call`. The first token
// decides. It may be a control token, which no text can spell. Errors: those of Grammar::gbnf() about the
// form; Usage, as above; Unsupported: gpt-oss without its control tokens.
Result<ForcedCall> call_or_form(const ToolCallFormat& format, std::span<const CallableTool> tools,
                                std::string_view form, const Tokenizer&, bool one_call);

// The counterpart for answers that must not be calls: the marks that precede them in gpt-oss.
std::string_view begin_of_answer(const ToolCallFormat& format);

}  // namespace gimbal
