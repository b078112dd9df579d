// Answers that must be a call of a tool, or have a form unless they are calls: what the prompt ends with, so
// that the answer begins as the model's family writes it, and a grammar of the rest.
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
  ToolCallFormat format;  // to read the answer, `begin` in front of it
  std::string begin;      // the answer's beginning, with control tokens written out
  std::string grammar;    // GBNF
};

// One call of one of the tools, of which there is one at least. Where the family's own form holds something
// that a grammar cannot speak of (control tokens within a call), the call is a JSON object between the
// family's marks, which ToolCallSplitter reads alike. Errors: Usage, naming the tool: a schema that cannot be
// obeyed, or is not of an object; a name that no call can have.
Result<ForcedCall> forced_call(const ToolCallFormat& format, std::span<const CallableTool> tools);

// An answer that matches `form` (GBNF), or consists of calls; at most one if `one_call`. The first token
// decides, a mark that is a control token among them, which a text cannot spell. Errors: those of
// Grammar::gbnf() about the form; Usage, as above; Unsupported: gpt-oss without its control tokens.
Result<ForcedCall> call_or_form(const ToolCallFormat& format, std::span<const CallableTool> tools,
                                std::string_view form, const Tokenizer&, bool one_call);

// The same for an answer that must be something else than a call: the marks after which gpt-oss writes it.
std::string_view begin_of_answer(const ToolCallFormat& format);

}  // namespace gimbal
