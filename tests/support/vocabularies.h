// The tokenizers of the reference data, with their expected answers.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/golden.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::test {

struct ReferenceVocabulary {
  std::string name;
  nlohmann::ordered_json answers;  // tokenizer/NAME.json
  std::unique_ptr<Tokenizer> tokenizer;
};

// The vocabularies of the reference data, all or those of these names; fails the calling test when one does
// not load.
std::vector<ReferenceVocabulary> reference_vocabularies(std::span<const char* const> only = {});

// A field of a case, `NAME` or `NAME_b64`; `otherwise` where the case has neither.
std::string text_of(const nlohmann::ordered_json& test_case, const std::string& name,
                    const std::string& otherwise = {});
std::vector<Token> ids_of(const nlohmann::ordered_json& test_case, const std::string& name,
                          const std::string& otherwise);

// A tokenizer out of GGUF bytes made by a test.
Result<std::unique_ptr<Tokenizer>> tokenizer_of(const std::string& gguf_bytes);

}  // namespace gimbal::test
