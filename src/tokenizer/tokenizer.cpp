// Chooses the algorithm by the file's tokenizer.ggml.model.
#include "tokenizer/tokenizer.h"

#include "base/format.h"
#include "base/text.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {

namespace {

constexpr char kModel[] = "tokenizer.ggml.model";

struct Unsupported {
  const char *model, *title;
};
constexpr Unsupported kUnsupported[] = {{"bert", "WordPiece"},
                                        {"t5", "Unigram"},
                                        {"rwkv", "the RWKV greedy trie"},
                                        {"plamo2", "PLaMo-2's table"}};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const Gguf& file) {
  const std::optional<std::string_view> model = file.string(kModel);
  if (!model)
    return Error{
        Code::Malformed,
        format("{}: {}: {}", file.path(), kModel,
               file.find(kModel) ? "expected a string" : "missing; there is no tokenizer in this file"),
        "Get a complete model file; one that was split off without its vocabulary cannot read text."};
  if (*model != "llama" && *model != "gpt2") {
    std::string what = quoted(*model);
    for (const Unsupported& u : kUnsupported)
      if (*model == u.model) what += format(" ({})", u.title);
    return Error{
        Code::Unsupported,
        format(
            "{}: {}: the tokenizer {} is not supported; 'llama' (SentencePiece) and 'gpt2' (byte-level BPE) "
            "are",
            file.path(), kModel, what),
        "Use a model with one of the supported tokenizers."};
  }
  Result<Vocabulary> vocabulary = Vocabulary::read(file);
  if (!vocabulary) return vocabulary.error();
  return *model == "llama" ? create_spm(file, *std::move(vocabulary))
                           : create_bpe(file, *std::move(vocabulary));
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
