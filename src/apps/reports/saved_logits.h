// A file with the tokens of a text and a model's logits for them, to compare another model with:
//   "gimbal-logits-1\n", 4 x int32 {vocabulary, window, scored, windows}, then for each window its tokens
//   (int32) and `scored` rows of logits (float32, vocabulary wide); everything little-endian.
#pragma once
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/toolkit/input_output.h"

namespace gimbal {

struct LogitsShape {
  int32_t vocabulary = 0;
  int32_t window = 0;  // tokens computed together
  int32_t scored = 0;  // positions up to the last but one; each predicts the next token
  int32_t windows = 0;
  bool operator==(const LogitsShape&) const = default;
};

Status write_shape(BinaryOutput&, const LogitsShape&);

// Reads such a file sequentially.
class SavedLogits {
 public:
  // Errors: NotFound and Failed with the system's reason; Usage for another kind of file.
  static Result<SavedLogits> open(const std::string& path);
  const LogitsShape& shape() const { return shape_; }
  // Reads the next values. Errors: Failed if the file ends early.
  Status read(std::span<int32_t> tokens) { return read(tokens.data(), tokens.size_bytes()); }
  Status read(std::span<float> logits) { return read(logits.data(), logits.size_bytes()); }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  Status read(void* to, size_t bytes);

  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  LogitsShape shape_;
};

}  // namespace gimbal
