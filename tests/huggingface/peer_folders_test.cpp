// Folders made of the models whose logits llama.cpp recorded: their tensors under the names that transformers
// has for them, heads and norms as it stores them. The logits must be llama.cpp's.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "support/golden.h"
#include "support/peer_models.h"

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
  std::string model, type;
  Json config;  // besides what all have
  const Names& names = kUsual;
  std::string layers = "model.layers.";
  bool halves = false;    // heads are stored for pairs of halves, not of neighbours
  bool less_one = false;  // the weights of norms are stored less 1
};

// Row r of a head in neighbours is row r / 2 of the first half, or of the second one.
std::vector<float> in_halves(const PeerTensor& t, size_t head_dim) {
  std::vector<float> out(t.values.size());
  const size_t columns = t.dims[0];
  for (size_t row = 0; row < t.dims[1]; row++) {
    const size_t r = row % head_dim, to = row - r + r / 2 + r % 2 * (head_dim / 2);
    std::copy_n(&t.values[row * columns], columns, &out[to * columns]);
  }
  return out;
}

void write_folder(const PeerModel& m, const Published& p, const std::string& path) {
  const std::string arch = m.metadata["general.architecture"];
  auto number = [&](const std::string& key) { return m.metadata.at(arch + "." + key); };
  const size_t head_dim =
      number("embedding_length").get<size_t>() / number("attention.head_count").get<size_t>();
  Json header = Json::object();
  std::string data;
  for (const PeerTensor& t : m.tensors) {
    std::string name = t.name, suffix, layer;
    if (const size_t dot = name.rfind('.'); dot != std::string::npos)
      suffix = name.substr(dot), name.resize(dot);
    if (name.starts_with("blk.")) {
      const size_t dot = name.find('.', 4);
      layer = p.layers + name.substr(4, dot - 4) + ".", name = name.substr(dot + 1);
    }
    std::vector<float> values = t.values;
    if (p.halves && (name == "attn_q" || name == "attn_k")) values = in_halves(t, head_dim);
    if (p.less_one && name.ends_with("norm") && suffix == ".weight")
      for (float& v : values) v -= 1;
    const size_t bytes = values.size() * sizeof(float);
    header[layer + p.names.at(name) + suffix] = {
        {"dtype", "F32"},
        {"shape", std::vector<uint64_t>(t.dims.rbegin(), t.dims.rend())},
        {"data_offsets", {data.size(), data.size() + bytes}}};
    data.append(reinterpret_cast<const char*>(values.data()), bytes);
  }
  Json config = {{"model_type", p.type},
                 {"hidden_size", number("embedding_length")},
                 {"intermediate_size", number("feed_forward_length")},
                 {"num_attention_heads", number("attention.head_count")},
                 {"num_key_value_heads", number("attention.head_count_kv")},
                 {"num_hidden_layers", number("block_count")},
                 {"max_position_embeddings", number("context_length")},
                 {"vocab_size", m.vocabulary.size()},
                 {"rope_theta", 10000.0}};
  config.update(p.config);
  Json vocabulary = Json::object();
  for (size_t i = 0; i < m.vocabulary.size(); i++) vocabulary[m.vocabulary[i]] = i;
  const Json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", Json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder", nullptr},
      {"model", {{"type", "BPE"}, {"unk_token", "<unk>"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  const std::string json = header.dump();
  const uint64_t size = json.size();
  std::filesystem::create_directories(path);
  EXPECT_TRUE(write_file(path + "/config.json", config.dump()));
  EXPECT_TRUE(write_file(path + "/tokenizer.json", tokenizer.dump()));
  EXPECT_TRUE(write_file(path + "/model.safetensors",
                         std::string(reinterpret_cast<const char*>(&size), sizeof size) + json + data));
}

TEST(PeerFolders, HaveTheLogitsOfLlamaCpp) {
  const std::vector<Published> all = {
      {.model = "phi2",
       .type = "phi",
       .config = {{"hidden_act", "gelu_new"}, {"layer_norm_eps", 1e-5}},
       .names = kPhi},
      {.model = "nemotron:biases",
       .type = "nemotron",
       .config = {{"hidden_act", "relu2"}, {"norm_eps", 1e-5}, {"partial_rotary_factor", 1.0}},
       .less_one = true},
      {.model = "nemotron",
       .type = "nemotron",
       .config = {{"hidden_act", "relu2"}, {"norm_eps", 1e-5}},
       .less_one = true},
      {.model = "arcee:plain",
       .type = "arcee",
       .config = {{"hidden_act", "relu2"}, {"rms_norm_eps", 1e-5}},
       .halves = true},
      {.model = "olmo",
       .type = "olmo",
       .config = {{"hidden_act", "silu"}, {"clip_qkv", 1.5}, {"tie_word_embeddings", true}},
       .halves = true},
      {.model = "olmo:plain",
       .type = "olmo",
       .config = {{"hidden_act", "silu"}, {"clip_qkv", nullptr}},
       .halves = true},
      {.model = "jais2", .type = "jais2", .config = {{"hidden_act", "relu2"}, {"layer_norm_eps", 1e-5}}},
      {.model = "xverse",
       .type = "xverse",
       .config = {{"hidden_act", "silu"}, {"rms_norm_eps", 1e-5}},
       .halves = true},
      {.model = "exaone:plain",
       .type = "exaone",
       .config = {{"activation_function", "silu"}, {"layer_norm_epsilon", 1e-5}},
       .names = kExaone,
       .layers = "transformer.h."},
  };
  for (const Published& p : all) {
    SCOPED_TRACE(p.model);
    const PeerModel m = peer_model(p.model);
    const std::string path = temporary_path("published-" + p.type);
    write_folder(m, p, path);
    expect_logits(m, path);
  }
}

}  // namespace
}  // namespace gimbal::test
