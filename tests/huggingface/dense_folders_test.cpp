// Dense families, as folders: the weights of a file that llama.cpp computed (tests/data/peer), under the
// names that transformers gives them, heads and norms as it stores them. The folder must give llama.cpp's
// logits.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "support/golden.h"
#include "support/peer_golden.h"
#include "support/plain_weights.h"
#include "support/safetensors_writer.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::map<std::string, std::string>;  // GGUF's, without numbers of layers and suffixes

const Names kUsual = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
const Names kPhi = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.final_layernorm"},
    {"output", "lm_head"},
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.dense"},
    {"ffn_up", "mlp.fc1"},
    {"ffn_down", "mlp.fc2"},
};
const Names kExaone = {
    {"token_embd", "transformer.wte"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"attn_norm", "ln_1"},
    {"attn_q", "attn.attention.q_proj"},
    {"attn_k", "attn.attention.k_proj"},
    {"attn_v", "attn.attention.v_proj"},
    {"attn_output", "attn.attention.out_proj"},
    {"ffn_norm", "ln_2"},
    {"ffn_gate", "mlp.c_fc_0"},
    {"ffn_up", "mlp.c_fc_1"},
    {"ffn_down", "mlp.c_proj"},
};

struct Published {
  std::string golden, type;
  Json config;  // besides what all have
  const Names& names = kUsual;
  std::string layers = "model.layers.";
  bool halves = false;    // heads are stored for pairs of halves, not of neighbours
  bool less_one = false;  // the weights of norms are stored less 1
};

// Row r of a head in neighbours is row r / 2 of the first half, or of the second one.
void put_into_halves(std::vector<float>& values, size_t columns, size_t head_dim) {
  const std::vector<float> from = values;
  for (size_t row = 0; row < values.size() / columns; row++) {
    const size_t r = row % head_dim, to = row - r + r / 2 + r % 2 * (head_dim / 2);
    std::copy_n(&from[row * columns], columns, &values[to * columns]);
  }
}

std::string weights_of(const Json& golden, const Published& p, size_t head_dim) {
  SafetensorsWriter file;
  for (const Json& t : golden["tensors"]) {
    std::string name = t[0], suffix, layer;
    if (const size_t dot = name.rfind('.'); dot != std::string::npos)
      suffix = name.substr(dot), name.resize(dot);
    if (name.starts_with("blk.")) {
      const size_t dot = name.find('.', 4);
      layer = p.layers + name.substr(4, dot - 4) + ".", name = name.substr(dot + 1);
    }
    const auto dims = t[1].get<std::vector<int64_t>>();
    std::string bytes = plain_values(t);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    if (p.halves && (name == "attn_q" || name == "attn_k"))
      put_into_halves(values, size_t(dims[0]), head_dim);
    if (p.less_one && name.ends_with("norm") && suffix == ".weight")
      for (float& v : values) v -= 1;
    std::memcpy(bytes.data(), values.data(), bytes.size());
    file.add(layer + p.names.at(name) + suffix, "F32", {dims.rbegin(), dims.rend()}, bytes);
  }
  return file.text();
}

void write_folder(const Json& golden, const Published& p, const std::string& path) {
  const std::string arch = golden["metadata"]["general.architecture"];
  auto number = [&](const std::string& key) { return golden["metadata"].at(arch + "." + key); };
  const size_t head_dim =
      number("embedding_length").get<size_t>() / number("attention.head_count").get<size_t>();
  Json config = {{"model_type", p.type},
                 {"hidden_size", number("embedding_length")},
                 {"intermediate_size", number("feed_forward_length")},
                 {"num_attention_heads", number("attention.head_count")},
                 {"num_key_value_heads", number("attention.head_count_kv")},
                 {"num_hidden_layers", number("block_count")},
                 {"max_position_embeddings", number("context_length")},
                 {"vocab_size", number("vocab_size")},
                 {"rope_theta", 10000.0}};
  config.update(p.config);
  const auto tokenizers = read_json(GIMBAL_SOURCE_DIR "/tests/data/peer/published_tokenizers.json");
  std::filesystem::create_directories(path);
  EXPECT_TRUE(write_file(path + "/config.json", config.dump()));
  EXPECT_TRUE(write_file(path + "/tokenizer.json", tokenizers["gpt2"]["tokenizer"].dump()));
  EXPECT_TRUE(write_file(path + "/model.safetensors", weights_of(golden, p, head_dim)));
}

TEST(DenseFolders, GiveLlamaCppsLogits) {
  const std::vector<Published> all = {
      {.golden = "phi2",
       .type = "phi",
       .config = {{"hidden_act", "gelu_new"},
                  {"layer_norm_eps", 1e-5},
                  {"partial_rotary_factor", 0.34}},  // 4 of 12 values
       .names = kPhi},
      {.golden = "nemotron-biases",
       .type = "nemotron",
       .config = {{"hidden_act", "relu2"}, {"norm_eps", 1e-5}, {"partial_rotary_factor", 1.0}},
       .less_one = true},
      {.golden = "nemotron",
       .type = "nemotron",
       .config = {{"hidden_act", "relu2"}, {"norm_eps", 1e-5}},
       .less_one = true},
      {.golden = "arcee-plain",
       .type = "arcee",
       .config = {{"hidden_act", "relu2"}, {"rms_norm_eps", 1e-5}},
       .halves = true},
      {.golden = "olmo",
       .type = "olmo",
       .config = {{"hidden_act", "silu"}, {"clip_qkv", 1.5}, {"tie_word_embeddings", true}},
       .halves = true},
      {.golden = "olmo-plain",
       .type = "olmo",
       .config = {{"hidden_act", "silu"}, {"clip_qkv", nullptr}},
       .halves = true},
      {.golden = "jais2", .type = "jais2", .config = {{"hidden_act", "relu2"}, {"layer_norm_eps", 1e-5}}},
      {.golden = "xverse",
       .type = "xverse",
       .config = {{"hidden_act", "silu"}, {"rms_norm_eps", 1e-5}},
       .halves = true},
      {.golden = "exaone-plain",
       .type = "exaone",
       .config = {{"activation_function", "silu"}, {"layer_norm_epsilon", 1e-5}},
       .names = kExaone,
       .layers = "transformer.h."},
  };
  for (const Published& p : all) {
    SCOPED_TRACE(p.golden);
    const Json golden = peer_golden(p.golden);
    const std::string path = temporary_path("published-" + p.golden);
    write_folder(golden, p, path);
    expect_peer_logits(golden, path);
  }
}

}  // namespace
}  // namespace gimbal::test
