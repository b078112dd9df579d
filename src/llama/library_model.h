// A model that a libllama computes, on the CPU and in this process: the child's part.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "llama/library.h"

namespace gimbal::llama {

struct RunSettings {
  int threads = 1;
  int context = 0;  // positions; 0: those of the tokens
};

class LibraryModel {
 public:
  using RowSink = std::function<bool(int position, std::span<const float> logits)>;
  // `name` as the library has it: "l_out-3". `values`: `rows` rows, each of the same length.
  using TensorSink =
      std::function<bool(const std::string& name, int64_t rows, std::span<const float> values)>;
  using TokenSink = std::function<bool(int32_t token)>;

  // Never freed, as the library. Errors: Failed if the library loads no model; its own words are on stderr.
  static Result<LibraryModel> load(const LlamaLibrary&, const std::string& path);

  int vocabulary() const { return vocabulary_size_; }
  int layers() const { return layers_; }
  int width() const { return width_; }
  bool half_values() const { return half_values_; }  // keeps the cache's values in f16 even for exact results
  std::string description() const;

  Result<std::vector<int32_t>> tokenize(const std::string& text, bool add_special, bool parse_special) const;
  // Keys and values are kept in f32, and attention is computed without blocks, so that both round little.
  // Computes all tokens in one batch and passes the logits of each; with `tensors`, before, the layers'
  // outputs. Returns the seconds of the computation. Errors: Usage for a token outside the vocabulary;
  // Failed.
  Result<double> logits(std::span<const int32_t> tokens, const RunSettings&, const RowSink&,
                        const TensorSink& tensors) const;
  struct Times {
    double prompt = 0, tokens = 0;  // seconds
  };
  // Continues the tokens with the `count` likeliest ones.
  Result<Times> greedy(std::span<const int32_t> tokens, int count, const RunSettings&,
                       const TokenSink&) const;

  // Begins a text that advance() continues, in place of the one before. Formats of the cache and blocks of
  // attention are the library's own. Errors: Failed if it makes no such context.
  Status begin(const RunSettings&);
  // Computes the next tokens of the text; returns the logits behind the last one, valid until the next call.
  // Errors: Usage without a text, for tokens outside the vocabulary or beyond the context; Failed.
  Result<std::span<const float>> advance(std::span<const int32_t> tokens);

 private:
  explicit LibraryModel(const LlamaLibrary& library) : library_(&library) {}
  struct Tap;
  Result<void*> new_context(int positions, const RunSettings&, Tap*) const;
  Status check(std::span<const int32_t> tokens) const;
  Status decode(void* context, std::span<const int32_t> tokens, int first, bool all_logits) const;
  Result<std::span<const float>> row(void* context, int index) const;

  const LlamaLibrary* library_;
  void* model_ = nullptr;
  const void* vocabulary_ = nullptr;
  int vocabulary_size_ = 0, layers_ = 0, width_ = 0;
  bool half_values_ = false;
  std::shared_ptr<void> text_;  // the context of begin()
  int positions_ = 0, held_ = 0;
};

}  // namespace gimbal::llama
