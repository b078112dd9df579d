// Chooses the algorithm by the file's tokenizer.ggml.model.
#include "tokenizer/tokenizer.h"

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {

namespace {

constexpr char kModel[] = "tokenizer.ggml.model";

struct Algorithm {
  const char *model, *title;
  Result<std::unique_ptr<Tokenizer>> (*create)(const Metadata&,
                                               Vocabulary);  // null: known, but not supported
};
constexpr Algorithm kAlgorithms[] = {
    {"llama", "SentencePiece", create_spm},
    {"gpt2", "byte-level BPE", create_bpe},
    {"gemma4", "character-level BPE", create_bpe},
    {"whitespace", "character-level BPE within words", create_bpe},
    {"bert", "WordPiece", create_wordpiece},
    {"t5", "Unigram", create_unigram},
    {"rwkv", "RWKV's longest token", create_rwkv},
    {"plamo2", "PLaMo 2", create_plamo2},
    {"hybriddna", "BPE with DNA in sixes", nullptr},
};

Error unsupported(const Metadata& metadata, std::string_view model) {
  std::string what = quoted(model), supported;
  for (const Algorithm& a : kAlgorithms) {
    if (a.create) supported += format("{}'{}' ({})", supported.empty() ? "" : ", ", a.model, a.title);
    else if (model == a.model) what += format(" ({})", a.title);
  }
  return {Code::Unsupported,
          format("{}: {}: the tokenizer {} is not supported; supported are {}", metadata.source(), kModel,
                 what, supported),
          "Use a model with one of the supported tokenizers."};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const Metadata& metadata) {
  const std::optional<std::string_view> model = metadata.string(kModel);
  if (!model)
    return Error{
        Code::Malformed,
        format("{}: {}: {}", metadata.source(), kModel,
               metadata.find(kModel) ? "expected a string" : "missing; there is no tokenizer in this file"),
        "Get a complete model file; one that was split off without its vocabulary cannot read text."};
  if (metadata.contains(kRulesKey)) {
    Result<Vocabulary> vocabulary = Vocabulary::read(metadata);
    if (!vocabulary) return vocabulary.error();
    return create_published(metadata, *std::move(vocabulary));
  }
  for (const Algorithm& a : kAlgorithms) {
    if (*model != a.model || !a.create) continue;
    Result<Vocabulary> vocabulary = Vocabulary::read(metadata);
    if (!vocabulary) return vocabulary.error();
    return a.create(metadata, *std::move(vocabulary));
  }
  return unsupported(metadata, *model);
}

// Whole characters out of a stream of tokens: a token may end in the middle of one.

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool special)
    : tokenizer_(tokenizer), special_(special) {}

std::string StreamDecoder::push(Token id) {
  // decode() of the first token takes off the space that encode() put before the text.
  held_ += at_start_ ? tokenizer_.decode({&id, 1}, special_) : tokenizer_.piece(id, special_);
  at_start_ = false;
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Step step = utf8_step(held_, at);
    if (step.kind == Utf8Step::Cut) break;
    if (step.kind == Utf8Step::Whole) out.append(held_, at, step.bytes);
    else out += kReplacement;
    at += step.bytes;
  }
  held_.erase(0, at);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  if (!held_.empty()) out = kReplacement;
  held_.clear();
  at_start_ = true;
  return out;
}

}  // namespace gimbal
