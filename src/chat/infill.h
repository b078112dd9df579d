// Prompts that a model fills in the middle of: text before a gap and text behind it, between the tokens that
// the model was trained with.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal {

// -1: the vocabulary has no such token.
struct InfillTokens {
  Token prefix = -1, suffix = -1, middle = -1;
  Token repository = -1, file = -1;  // before the name of the project, and of each of its files

  bool complete() const { return prefix >= 0 && suffix >= 0 && middle >= 0; }
};

// By the file's ids (tokenizer.ggml.fim_pre_token_id and so on), else by known names.
InfillTokens infill_tokens(const Metadata&, const Tokenizer&);

struct InfillFile {
  std::string name, text;
};

// The form of llama.cpp's server, which is the one of Qwen2.5-Coder where the vocabulary has tokens for files
// (arXiv 2409.12186, section 3.2.2). `typed`: what stands before the gap already, behind `before`. No text
// becomes a control token.
std::vector<Token> infill_prompt(const InfillTokens&, const Tokenizer&, const std::string& before,
                                 const std::string& behind, const std::string& typed = "",
                                 std::span<const InfillFile> files = {});

}  // namespace gimbal
