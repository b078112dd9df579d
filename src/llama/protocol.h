// The protocol between gimbal and the child process that runs a libllama: frames on a socket, all numbers
// little-endian.
//
// frame: u32 kind, u32 bytes, payload
// - Json: one object. A request has "do"; an answer ends with one object, which is {"error": ...} on failure.
// - Text: bytes of a text, behind the request "tokenize".
// - Row: u32 position, f32[vocabulary]: logits.
// - Tensor: u32 bytes of the name, u32 rows, u32 columns, the name, f32[rows][columns]: a layer's output.
//
// Each "do", its fields, and its answer:
// - open: library. release, model_struct, context_struct, layers, system
// - load: model. vocabulary, layers, width, half_values, description, sandbox, not_in_sandbox
// - tokenize: add_special, parse_special; a Text follows. tokens
// - logits: tokens, threads, context, layers. Tensors, a Row for each token; seconds
// - greedy: tokens, count, threads, context. {"token": id} for each; prompt_seconds, token_seconds
// - begin: threads, context. {}
// - advance: tokens, behind those since "begin". The Row of the last one; {}
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal::llama {

enum class FrameKind : uint32_t { Json = 1, Text, Row, Tensor };
struct Frame {
  FrameKind kind;
  std::string bytes;
};

inline constexpr uint32_t kMaxFrame = 1 << 28;  // bytes of a payload

std::string encoded(FrameKind, std::string_view payload);
std::string encoded(const Json&);
std::string encoded_row(int position, std::span<const float> logits);
std::string encoded_tensor(const std::string& name, int64_t rows, std::span<const float> values);

// Cuts received bytes into frames.
class FrameReader {
 public:
  void feed(std::string_view bytes) { held_ += bytes; }
  // The next whole frame; nullopt: more bytes are needed. Errors: Malformed for an unknown kind or a payload
  // that is too long.
  Result<std::optional<Frame>> next();

 private:
  std::string held_;
  size_t read_ = 0;
};

struct RowFrame {
  int position;
  std::vector<float> values;
};
struct TensorFrame {
  std::string name;
  int rows, columns;
  std::vector<float> values;
};
// Errors: Malformed unless the payload has exactly the announced size.
Result<RowFrame> read_row(std::string_view payload);
Result<TensorFrame> read_tensor(std::string_view payload);

}  // namespace gimbal::llama
