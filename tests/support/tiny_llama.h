// A whole llama of one layer, 8 wide, as lists of keys and tensors that a test changes before it is written.
// Every weight is 1, or what `weight` gives for its place in its tensor.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/gguf_writer.h"
#include "tensor/half.h"

namespace gimbal::test {

struct TinyTensor {
  std::vector<uint64_t> dims;
  uint32_t type = 0;  // f32
};

struct TinyLlama {
  std::map<std::string, std::pair<uint32_t, std::string>> keys;
  std::map<std::string, TinyTensor> tensors;
  std::function<float(uint64_t)> weight = [](uint64_t) { return 1.f; };

  TinyLlama() {
    keys["general.architecture"] = {kString, gguf_string("llama")};
    for (auto [key, n] : {std::pair<const char*, uint32_t>{"block_count", 1},
                          {"embedding_length", 8},
                          {"feed_forward_length", 12},
                          {"attention.head_count", 2},
                          {"attention.head_count_kv", 1},
                          {"context_length", 64}})
      set(key, kU32, n);
    set("attention.layer_norm_rms_epsilon", kF32, 1e-5f);
    tensors["token_embd.weight"] = {{8, 5}};
    tensors["output_norm.weight"] = {{8}};
    for (auto& [name, dims] : std::map<std::string, std::vector<uint64_t>>{{"attn_norm", {8}},
                                                                           {"attn_q", {8, 8}},
                                                                           {"attn_k", {8, 4}},
                                                                           {"attn_v", {8, 4}},
                                                                           {"attn_output", {8, 8}},
                                                                           {"ffn_norm", {8}},
                                                                           {"ffn_gate", {8, 12}},
                                                                           {"ffn_up", {8, 12}},
                                                                           {"ffn_down", {12, 8}}})
      tensors["blk.0." + name + ".weight"] = {dims};
  }
  template <class T>
  void set(const std::string& key, uint32_t type, T value) {
    keys["llama." + key] = {type, le(value)};
  }
  void text(const std::string& key, const std::string& value) { keys[key] = {kString, gguf_string(value)}; }
  void u32(const std::string& key, uint32_t value) { set(key, kU32, value); }
  void f32(const std::string& key, float value) { set(key, kF32, value); }
  void counts(const std::string& key, const std::vector<int32_t>& values) {
    std::string list = le<uint32_t>(kI32) + le<uint64_t>(values.size());
    for (int32_t v : values) list += le(v);
    keys["llama." + key] = {kArray, list};
  }

  // f32, f16 or bf16, by the ids of the format; the tests of other types say which error they make.
  static std::string encoded(uint32_t type, float value) {
    return type == 1 ? le(float_to_half(value)) : type == 30 ? le(float_to_bf16(value)) : le(value);
  }

  std::string build() const {
    GgufWriter w;
    for (auto& [key, value] : keys) w.raw(key, value.first, value.second);
    for (auto& [name, t] : tensors) {
      uint64_t n = 1;
      for (uint64_t d : t.dims) n *= d;
      std::string data;
      for (uint64_t i = 0; i < n; i++) data += encoded(t.type, weight(i));
      w.tensor(name, t.dims, t.type, data);
    }
    return w.build();
  }
};

}  // namespace gimbal::test
