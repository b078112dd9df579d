// tokenizer.json and its companions as metadata under GGUF's keys, and the rules that GGUF has no keys for.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "huggingface/metadata_builder.h"
#include "huggingface/model_config.h"

namespace gimbal {

// The texts of a folder's files; nullopt for a file that it does not have.
struct TokenizerTexts {
  std::string folder;  // its path, for errors
  std::optional<std::string> tokenizer, tokenizer_config, generation_config, chat_template;
};
// Errors: those of read_file().
Result<TokenizerTexts> read_tokenizer_texts(const std::string& folder);

// Adds the vocabulary, special tokens and chat templates of a folder. `rows`: of the table of embeddings; the
// vocabulary has as many tokens. Errors: Malformed for a folder without tokenizer.json, and for a file that
// is damaged; Unsupported for a model that is not computed.
Status add_tokenizer(const TokenizerTexts&, const ModelConfig& config, int64_t rows, MetadataBuilder& out);

}  // namespace gimbal
