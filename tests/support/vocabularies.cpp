// Loads the reference vocabularies: unpacked in memory, parsed and dropped, since a tokenizer keeps its own
// copies.
#include "support/vocabularies.h"
#include "files/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace gimbal::test {

Result<std::unique_ptr<Tokenizer>> tokenizer_of(const std::string& gguf_bytes) {
  Result<ModelSource> file = parse_gguf(std::as_bytes(std::span(gguf_bytes)), "test.gguf");
  if (!file) return file.error();
  return Tokenizer::create(file->metadata());
}

std::vector<ReferenceVocabulary> reference_vocabularies(std::span<const char* const> only) {
  std::vector<ReferenceVocabulary> all;
  // Kinds of vocabularies that the collection lacks are in tests/data/peer (scripts/oracle/tokenization.py
  // --write).
  std::vector<std::string> paths = golden_files("tokenizer", ".json");
  for (const char* name : {"bert-bge", "xlm-roberta-6000", "plamo2-3000"})
    paths.push_back(std::string(GIMBAL_SOURCE_DIR "/tests/data/peer/tokenizer/") + name + ".json");
  for (const std::string& path : paths) {
    ReferenceVocabulary v;
    v.name = std::filesystem::path(path).stem();
    if (!only.empty() && std::find(only.begin(), only.end(), v.name) == only.end()) continue;
    v.answers = read_json(path);
    const std::string packed = std::filesystem::path(path).parent_path().parent_path().string() + "/vocab/" +
                               v.answers["vocab"].get<std::string>() + ".gz";
    Result<std::unique_ptr<Tokenizer>> tokenizer = tokenizer_of(gunzip_file(packed));
    if (!tokenizer) {
      ADD_FAILURE() << packed << ": " << tokenizer.error().message;
      continue;
    }
    v.tokenizer = *std::move(tokenizer);
    all.push_back(std::move(v));
  }
  return all;
}

std::string text_of(const nlohmann::ordered_json& test_case, const std::string& name,
                    const std::string& otherwise) {
  if (test_case.contains(name)) return test_case[name].get<std::string>();
  if (test_case.contains(name + "_b64")) return base64_decode(test_case[name + "_b64"].get<std::string>());
  return otherwise;
}

std::vector<Token> ids_of(const nlohmann::ordered_json& test_case, const std::string& name,
                          const std::string& otherwise) {
  return test_case[test_case.contains(name) ? name : otherwise].get<std::vector<Token>>();
}

}  // namespace gimbal::test
