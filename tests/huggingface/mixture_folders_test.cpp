// Families with experts, as folders: the weights of a file that llama.cpp computed (tests/data/peer), under
// the names and numbers that transformers gives them. The folder must give llama.cpp's logits.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "huggingface/folder.h"
#include "support/golden.h"
#include "support/peer_golden.h"
#include "support/plain_weights.h"
#include "support/safetensors_writer.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;

struct Names {
  const char *file, *folder;  // '@' in a folder's name: an expert's number
};
constexpr Names kCommon[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate_exps.weight", "mlp.experts.@.gate_proj.weight"},
    {"ffn_up_exps.weight", "mlp.experts.@.up_proj.weight"},
    {"ffn_down_exps.weight", "mlp.experts.@.down_proj.weight"},
    {"ffn_gate_shexp.weight", "mlp.shared_experts.gate_proj.weight"},
    {"ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight"},
    {"ffn_down_shexp.weight", "mlp.shared_experts.down_proj.weight"},
};

struct FamilyCase {
  const char *golden, *model_type;
  std::vector<Names> names;  // before kCommon
  Json config;               // beside what all have
};

std::vector<FamilyCase> family_cases() {
  return {
      {"dots1",
       "dots1",
       {},
       {{"n_routed_experts", 6},
        {"num_experts_per_tok", 2},
        {"moe_intermediate_size", 24},
        {"n_shared_experts", 2},
        {"first_k_dense_replace", 1},
        {"norm_topk_prob", true},
        {"routed_scaling_factor", 1.7},
        {"n_group", 1},
        {"topk_group", 1}}},
      {"ernie4_5-moe",
       "ernie4_5_moe",
       {{"exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias"}},
       {{"moe_num_experts", 6},
        {"moe_k", 2},
        {"moe_intermediate_size", 24},
        {"moe_num_shared_experts", 2},
        {"moe_layer_start_index", 1},
        {"moe_layer_end_index", 2},
        {"moe_layer_interval", 1}}},
      {"minimax-m2",
       "minimax_m2",
       {{"ffn_gate_inp.weight", "block_sparse_moe.gate.weight"},
        {"exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias"},
        {"ffn_gate_exps.weight", "block_sparse_moe.experts.@.w1.weight"},
        {"ffn_up_exps.weight", "block_sparse_moe.experts.@.w3.weight"},
        {"ffn_down_exps.weight", "block_sparse_moe.experts.@.w2.weight"}},
       {{"num_local_experts", 6}, {"num_experts_per_tok", 2}, {"rotary_dim", 8}}},
      {"hunyuan-moe-plain",
       "hunyuan_v1_moe",
       {{"attn_q_norm.weight", "self_attn.query_layernorm.weight"},
        {"attn_k_norm.weight", "self_attn.key_layernorm.weight"},
        {"ffn_gate_inp.weight", "mlp.gate.wg.weight"},
        {"ffn_gate_shexp.weight", "mlp.shared_mlp.gate_proj.weight"},
        {"ffn_up_shexp.weight", "mlp.shared_mlp.up_proj.weight"},
        {"ffn_down_shexp.weight", "mlp.shared_mlp.down_proj.weight"}},
       {{"num_experts", 6},
        {"moe_topk", {2, 2, 2}},
        {"moe_intermediate_size", {24, 24, 24}},
        {"num_shared_expert", {1, 1, 1}}}},
      {"grovemoe-published",
       "grove_moe",
       {{"ffn_gate_chexps.weight", "mlp.chunk_experts.@.gate_proj.weight"},
        {"ffn_up_chexps.weight", "mlp.chunk_experts.@.up_proj.weight"},
        {"ffn_down_chexps.weight", "mlp.chunk_experts.@.down_proj.weight"}},
       {{"num_experts", 8},
        {"num_experts_per_tok", 3},
        {"moe_intermediate_size", 24},
        {"norm_topk_prob", true},
        {"mlp_only_layers", Json::array()},
        {"decoder_sparse_step", 1}}},
      {"afmoe",
       "afmoe",
       {{"attn_gate.weight", "self_attn.gate_proj.weight"},
        {"post_attention_norm.weight", "post_attention_layernorm.weight"},
        {"ffn_norm.weight", "pre_mlp_layernorm.weight"},
        {"post_ffw_norm.weight", "post_mlp_layernorm.weight"},
        {"ffn_gate_inp.weight", "mlp.router.gate.weight"},
        {"exp_probs_b.bias", "mlp.expert_bias"}},
       {{"num_experts", 6},
        {"num_experts_per_tok", 2},
        {"moe_intermediate_size", 24},
        {"num_shared_experts", 2},
        {"num_dense_layers", 1},
        {"route_scale", 1.7},
        {"mup_enabled", true},
        {"sliding_window", 9},
        {"layer_types",
         {"sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
          "sliding_attention"}}}},
  };
}

std::string folder_name(const FamilyCase& c, std::string name, const std::string& prefix) {
  for (const Names& n : c.names)
    if (name == n.file) return prefix + n.folder;
  for (const Names& n : kCommon)
    if (name == n.file)
      return std::string(n.folder).starts_with("model.") || name == "output.weight" ? n.folder
                                                                                    : prefix + n.folder;
  ADD_FAILURE() << name << " has no name in the folder";
  return name;
}

// With the sizes of the golden file; its keys begin with the name of the architecture.
Json config_of(const FamilyCase& c, const Json& golden) {
  const Json& keys = golden["metadata"];
  auto key = [&](const char* name) {
    return keys[keys["general.architecture"].get<std::string>() + "." + name];
  };
  Json config = {{"model_type", c.model_type},
                 {"hidden_size", key("embedding_length")},
                 {"num_hidden_layers", key("block_count")},
                 {"num_attention_heads", key("attention.head_count")},
                 {"num_key_value_heads", key("attention.head_count_kv")},
                 {"head_dim", key("attention.key_length")},
                 {"intermediate_size", key("feed_forward_length")},
                 {"max_position_embeddings", key("context_length")},
                 {"vocab_size", key("vocab_size")},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 10000.0},
                 {"hidden_act", "silu"}};
  bool tied = true;
  for (const auto& t : golden["tensors"]) tied = tied && t[0] != "output.weight";
  config["tie_word_embeddings"] = tied;
  config.update(c.config);
  return config;
}

std::string make_folder(const FamilyCase& c, const Json& golden) {
  const std::string path = temporary_path(c.model_type);
  std::filesystem::create_directories(path);
  EXPECT_TRUE(write_file(path + "/config.json", config_of(c, golden).dump()));
  const auto tokenizers = read_json(GIMBAL_SOURCE_DIR "/tests/data/peer/published_tokenizers.json");
  EXPECT_TRUE(write_file(path + "/tokenizer.json", tokenizers["gpt2"]["tokenizer"].dump()));
  SafetensorsWriter file;
  for (const auto& t : golden["tensors"]) {
    std::string name = t[0], prefix = "model.";
    if (name.starts_with("blk.")) {
      const size_t dot = name.find('.', 4);
      prefix = "model.layers." + name.substr(4, dot - 4) + ".";
      name = name.substr(dot + 1);
    }
    const auto dims = t[1].get<std::vector<int64_t>>();
    const std::string to = folder_name(c, name, prefix), values = plain_values(t);
    std::vector<int64_t> shape(dims.rbegin(), dims.rend());
    const size_t at = to.find('@');
    if (at == std::string::npos) {
      file.add(to, "F32", shape, values);
      continue;
    }
    const auto experts = size_t(shape[0]);
    shape.erase(shape.begin());
    for (size_t e = 0; e < experts; e++)
      file.add(to.substr(0, at) + std::to_string(e) + to.substr(at + 1), "F32", shape,
               values.substr(e * values.size() / experts, values.size() / experts));
  }
  EXPECT_TRUE(write_file(path + "/model.safetensors", file.text()));
  return path;
}

TEST(MixtureFolders, GiveLlamaCppsLogits) {
  for (const FamilyCase& c : family_cases()) {
    SCOPED_TRACE(c.model_type);
    const Json golden = peer_golden(c.golden);
    expect_peer_logits(golden, make_folder(c, golden));
  }
}

}  // namespace
}  // namespace gimbal::test
