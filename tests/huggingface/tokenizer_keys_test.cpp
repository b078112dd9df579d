// tokenizer.json and the files beside it as metadata: the keys and numbers of a GGUF file.
#include <gtest/gtest.h>

#include "base/json.h"
#include "huggingface/tokenizer_json.h"

namespace gimbal::test {
namespace {

const Json kBpe = {{"model",
                    {{"type", "BPE"},
                     {"vocab", {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"a", 3}, {"b", 4}, {"ab", 5}}},
                     {"merges", Json::array({"a b"})},
                     {"unk_token", "<unk>"}}},
                   {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                   {"added_tokens",
                    {{{"id", 1}, {"content", "<s>"}, {"special", true}},
                     {{"id", 2}, {"content", "</s>"}, {"special", true}}}}};

// The files of a folder; an empty object: it does not have the file.
struct Files {
  Json tokenizer = kBpe, tokenizer_config = Json::object(), generation = Json::object(),
       config = Json::object();
  int64_t rows = 6;  // of the table of embeddings
};

MetadataBuilder keys_of(const Files& files) {
  const auto text = [](const Json& json) {
    return json.empty() ? std::nullopt : std::optional<std::string>(json.dump());
  };
  MetadataBuilder out("folder");
  const auto ok = add_tokenizer(
      {"folder", text(files.tokenizer), text(files.tokenizer_config), text(files.generation), {}},
      ModelConfig(parse_json(files.config.dump()), "'config.json'"), files.rows, out);
  EXPECT_TRUE(ok) << ok.error().message;
  return out;
}
std::optional<uint64_t> id_of(const char* name, const Files& files) {
  return keys_of(files).metadata().unsigned_integer(std::string("tokenizer.ggml.") + name + "_token_id");
}

TEST(TokenizerKeys, NamesOfSpecialTokensGoBeforeNumbers) {
  Files files;
  EXPECT_EQ(id_of("bos", files), std::nullopt);
  files.config = {{"bos_token_id", 3}, {"eos_token_id", 4}};
  EXPECT_EQ(id_of("bos", files), 3u);
  EXPECT_EQ(id_of("eos", files), 4u);
  files.generation = {{"bos_token_id", 5}, {"eos_token_id", {4, 2}}};
  EXPECT_EQ(id_of("bos", files), 5u) << "generation_config.json goes before config.json";
  EXPECT_EQ(id_of("eos", files), 4u) << "the first of several";
  EXPECT_EQ(keys_of(files).metadata().array("tokenizer.gimbal.stop_token_ids")->integers(),
            (std::vector<int64_t>{4, 2}));
  files.tokenizer_config = {{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}};
  EXPECT_EQ(id_of("bos", files), 1u);
  EXPECT_EQ(id_of("eos", files), 2u);
  files.tokenizer_config = {{"bos_token", nullptr}, {"eos_token", "no token"}, {"pad_token", "b"}};
  EXPECT_EQ(id_of("bos", files), 5u);
  EXPECT_EQ(id_of("eos", files), 4u);
  EXPECT_EQ(id_of("padding", files), 4u);
  EXPECT_EQ(id_of("mask", files), std::nullopt);
  EXPECT_EQ(id_of("unknown", files), 0u);
}

// Llama 3's files have the template within a sequence, behind ByteLevel.
TEST(TokenizerKeys, PostProcessorsSayWhatStandsAroundAText) {
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}};
  const auto around = [&](const Json& processor) {
    Files files;
    files.tokenizer["post_processor"] = processor;
    const MetadataBuilder keys = keys_of(files);
    const auto flag = [&](const char* key) { return keys.metadata().boolean(key).value_or(false); };
    return std::pair(flag("tokenizer.ggml.add_bos_token"), flag("tokenizer.ggml.add_eos_token"));
  };
  const auto templated = [](const Json& single) {
    return Json{{"type", "TemplateProcessing"}, {"single", single}};
  };
  const auto in_sequence = [&](const Json& processor) {
    Json all = Json::array();
    all.push_back(byte_level), all.push_back(processor);
    return Json{{"type", "Sequence"}, {"processors", all}};
  };
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const auto token = [](const char* id) { return Json{{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; };
  const Json before = templated(Json::array({token("<s>"), text}));
  const Json behind = templated(Json::array({text, token("</s>")}));
  const Json both = templated(Json::array({token("<s>"), text, token("</s>")}));
  for (const bool nested : {false, true}) {
    SCOPED_TRACE(nested);
    const auto found = [&](const Json& p) { return around(nested ? in_sequence(p) : p); };
    EXPECT_EQ(found(before), std::pair(true, false));
    EXPECT_EQ(found(behind), std::pair(false, true));
    EXPECT_EQ(found(both), std::pair(true, true));
    EXPECT_EQ(found(templated(Json::array({text}))), std::pair(false, false));
    EXPECT_EQ(found({{"type", "BertProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}}),
              std::pair(true, true));
    EXPECT_EQ(found(byte_level), std::pair(false, false));
  }
  EXPECT_EQ(around(in_sequence(in_sequence(before))), std::pair(true, false));
  EXPECT_EQ(around(nullptr), std::pair(false, false));
}

// GGUF's types: 1 is an ordinary token, 2 the unknown one, 3 a control token, 4 one that was added,
// 5 no token, 6 a byte.
TEST(TokenizerKeys, TypesOfTokens) {
  const auto types = [](const Json& tokenizer, int64_t rows) {
    Files files;
    files.tokenizer = tokenizer, files.rows = rows;
    return keys_of(files).metadata().array("tokenizer.ggml.token_type")->integers();
  };
  EXPECT_EQ(types(kBpe, 6), (std::vector<int64_t>{2, 3, 3, 1, 1, 1}));
  EXPECT_EQ(types(kBpe, 8), (std::vector<int64_t>{2, 3, 3, 1, 1, 1, 5, 5})) << "rows without a token";
  EXPECT_EQ(types(kBpe, 4), (std::vector<int64_t>{2, 3, 3, 1})) << "tokens without a row";
  // Of Unigram the number of the unknown token counts, also when it is listed as an added token.
  Json vocab = Json::array();
  for (const char* text : {"<s>", "<unk>", "a", "<tool>", "<0x41>"}) vocab.push_back({text, -1.5});
  const Json added = {{{"id", 0}, {"content", "<s>"}, {"special", true}},
                      {{"id", 1}, {"content", "<unk>"}, {"special", true}},
                      {{"id", 3}, {"content", "<tool>"}, {"special", false}}};
  Json unigram = {{"model", {{"type", "Unigram"}, {"unk_id", 1}, {"vocab", vocab}, {"byte_fallback", true}}},
                  {"added_tokens", added}};
  EXPECT_EQ(types(unigram, 5), (std::vector<int64_t>{3, 2, 1, 4, 6}));
  unigram["model"]["byte_fallback"] = false, unigram["added_tokens"] = Json::array();
  EXPECT_EQ(types(unigram, 5), (std::vector<int64_t>{1, 2, 1, 1, 1}));
}

// A vocabulary of WordPiece marks what follows inside a word, GGUF's form what begins one.
TEST(TokenizerKeys, WordPieceMarksTheBeginningsOfWords) {
  Files files;
  files.tokenizer = {{"model",
                      {{"type", "WordPiece"},
                       {"unk_token", "[UNK]"},
                       {"vocab", {{"un", 0}, {"##able", 1}, {"[UNK]", 2}, {"#", 3}}}}},
                     {"added_tokens", Json::array({{{"id", 2}, {"content", "[UNK]"}, {"special", true}}})}};
  files.rows = 5;
  const MetadataBuilder keys = keys_of(files);
  EXPECT_EQ(keys.metadata().array("tokenizer.ggml.tokens")->strings(),
            (std::vector<std::string_view>{"\u2581un", "able", "[UNK]", "\u2581#", "[PAD4]"}));
  EXPECT_EQ(keys.metadata().string("tokenizer.ggml.model"), "bert");
}

// SentencePiece merges by scores: what is merged earlier has a higher one, and tokens that no merge makes
// come behind all of them.
TEST(TokenizerKeys, TheOrderOfMergesBecomesScores) {
  Files files;
  files.tokenizer = {{"model",
                      {{"type", "BPE"},
                       {"vocab", {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"aba", 3}, {"ab", 4}, {"<0x41>", 5}}},
                       {"merges", Json::array({"a b", "ab a", "a ba"})},
                       {"unk_token", "<unk>"},
                       {"byte_fallback", true}}}};
  const MetadataBuilder keys = keys_of(files);
  EXPECT_EQ(keys.metadata().string("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(keys.metadata().array("tokenizer.ggml.scores")->floats(),
            (std::vector<float>{0, -3, -4, -1, 0, 0}));
}

}  // namespace
}  // namespace gimbal::test
