// The inputs of a text: at each position a token, or an embedding of a picture or a sound. Each input has
// an identity: the token itself, or the digest of the embedding. Texts share computed state only where the
// identities are equal, and the scales of the adapters that compute the text.
#pragma once
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/step.h"

namespace gimbal {

inline constexpr int32_t kNoToken = -1;  // in a list of tokens: an embedding

// Rows of embeddings, made once and shared by all texts that contain them.
class Embeddings {
 public:
  // `values`: f32[rows, width]. `columns`: of the grid that the rows are, line by line; 0: no grid, as of a
  // sound. `together`: in models that know it (Gemma 3), each row attends to all of them, later ones too;
  // they must be in one step. Errors: Usage unless they are whole rows of finite numbers, and whole lines.
  static Result<std::shared_ptr<const Embeddings>> create(std::vector<float> values, int width,
                                                          int columns = 0, bool together = false);

  int rows() const { return int(values_.size()) / width_; }
  int width() const { return width_; }
  int columns() const { return columns_; }
  bool together() const { return together_; }
  const float* row(int i) const { return values_.data() + size_t(i) * size_t(width_); }
  std::span<const float> values() const { return values_; }
  const std::string& digest() const { return digest_; }  // SHA-256 of the shape and the values, in hex

 private:
  Embeddings(std::vector<float> values, int width, int columns, bool together);

  const std::vector<float> values_;
  const int width_, columns_;
  const bool together_;
  const std::string digest_;
};
using EmbeddingsPtr = std::shared_ptr<const Embeddings>;

// The rows `first` to `first + rows` of `of` at the positions of a text from `position` on.
struct EmbeddingSpan {
  int position;
  EmbeddingsPtr of;
  int first, rows;
};

// One input. `of`: nullptr for a token; else the token is kNoToken, and the input is a row of `*of`.
struct InputItem {
  int32_t token;
  const EmbeddingsPtr* of = nullptr;
  int row = 0;

  const float* values() const { return of ? (*of)->row(row) : nullptr; }
  bool operator==(const InputItem&) const;  // of identities
};

class Inputs;

// A view of part of a list of inputs; valid until the list changes.
class InputView {
 public:
  InputView() = default;
  InputView(std::span<const int32_t> tokens, std::span<const EmbeddingSpan> embeddings, int begin = 0,
            std::span<const float> adapters = {})
      : tokens_(tokens), embeddings_(embeddings), adapters_(adapters), begin_(begin) {}
  InputView(const Inputs&);
  // Tokens alone.
  template <class Tokens>
  requires std::convertible_to<const Tokens&, std::span<const int32_t>> InputView(const Tokens& tokens)
      : tokens_(tokens) {}

  size_t size() const { return tokens_.size(); }
  bool empty() const { return tokens_.empty(); }
  std::span<const int32_t> tokens() const { return tokens_; }
  std::span<const EmbeddingSpan> embeddings() const { return embeddings_; }  // of all inputs
  std::span<const float> adapters() const { return adapters_; }              // Inputs::adapters()
  InputView adapted(std::span<const float> scales) const { return {tokens_, embeddings_, begin_, scales}; }
  InputItem operator[](size_t i) const;
  InputView subview(size_t first, size_t n) const {
    return {tokens_.subspan(first, n), embeddings_, begin_ + int(first), adapters_};
  }
  InputView subview(size_t first) const { return subview(first, size() - first); }
  InputView first(size_t n) const { return subview(0, n); }

 private:
  std::span<const int32_t> tokens_;  // kNoToken: an embedding
  std::span<const EmbeddingSpan> embeddings_;
  std::span<const float> adapters_;
  int begin_ = 0;  // of tokens_, in the positions of embeddings_
};

// The most inputs from `at` on, at most `rows`, that do not end inside embeddings that must be in one step;
// 0: these have more rows.
int whole_rows(const InputView&, size_t at, int rows);
// The refusal of a step with 0 of them: of embeddings that begin at `at`. Errors: Usage.
Error too_long_for_a_step(const InputView&, size_t at, int batch);

// The length of the common prefix of two texts, in inputs; 0 for texts under different adapters.
size_t common_prefix(const InputView& a, const InputView& b);

// Errors: Usage for a token outside the vocabulary, and for kNoToken without an embedding. `width`: of the
// embeddings that the model takes; 0: none, and an embedding is an error.
Status check_input(const InputItem&, int vocabulary, int width);
Status check_inputs(const InputView&, int vocabulary, int width);
// Errors: Usage unless these are no scales, or a finite one for each of the model's adapters.
Status check_adapters(std::span<const float> scales, size_t adapters);

class Inputs {
 public:
  Inputs() = default;
  // `embeddings`: by rising position, where the tokens are kNoToken; check_inputs() checks this.
  Inputs(std::vector<int32_t> tokens, std::vector<EmbeddingSpan> embeddings = {},
         std::vector<float> adapters = {})
      : tokens_(std::move(tokens)), embeddings_(std::move(embeddings)), adapters_(std::move(adapters)) {}

  size_t size() const { return tokens_.size(); }
  bool empty() const { return tokens_.empty(); }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::vector<EmbeddingSpan>& embeddings() const { return embeddings_; }
  InputItem operator[](size_t i) const { return InputView(*this)[i]; }
  // The scales of the model's LoRA adapters for this text, by adapter, 0: not applied; empty: those that the
  // model was loaded with.
  const std::vector<float>& adapters() const { return adapters_; }
  void adapt(std::span<const float> scales) { adapters_.assign(scales.begin(), scales.end()); }

  void reserve(size_t n) { tokens_.reserve(n); }
  void assign(const Inputs& from);  // keeps its memory
  void push(const InputItem&);
  void push(int32_t token) { tokens_.push_back(token); }
  void append(const InputView&);
  void resize(size_t shorter);
  // Replaces the input at `i`; if the inputs differ and one is an embedding, drops all later inputs.
  void set(size_t i, const InputItem&);

 private:
  std::vector<int32_t> tokens_;
  std::vector<EmbeddingSpan> embeddings_;  // by rising position
  std::vector<float> adapters_;
};

inline InputView::InputView(const Inputs& all)
    : InputView(all.tokens(), all.embeddings(), 0, all.adapters()) {}

// The places of a text's inputs for models with rotary sections (M-RoPE: Wang et al., "Qwen2-VL", 2024,
// section 2.1). Tokens follow each other. A grid that begins at p has one time p; its lines and columns count
// from p, and the text behind it begins at p + the larger of the numbers of its lines and columns.
class RopePositions {
 public:
  RopePositions() = default;
  // Behind these inputs, the beginning of a text.
  explicit RopePositions(const InputView& before);
  RopePosition add(const InputItem&);  // of the next input

 private:
  int next_ = 0;
  const Embeddings* grid_ = nullptr;  // that the last input was in
  int begin_ = 0, row_ = 0;           // of it: its place, and the last input's row
};

}  // namespace gimbal
