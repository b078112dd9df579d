// table: of families, in the order of their models' kinship. Names and keys follow transformers' modeling
// files on one side, and gguf-py's constants on the other.
#include "huggingface/families.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace gimbal {
namespace {

using enum Turn;

constexpr NameRule kUsual[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm", Norm},
    {"lm_head", "output"},
    {"model.layers.#.input_layernorm", "blk.#.attn_norm", Norm},
    {"model.layers.#.self_attn.q_proj", "blk.#.attn_q", QueryRows},
    {"model.layers.#.self_attn.k_proj", "blk.#.attn_k", KeyRows},
    {"model.layers.#.self_attn.v_proj", "blk.#.attn_v"},
    {"model.layers.#.self_attn.o_proj", "blk.#.attn_output"},
    {"model.layers.#.self_attn.qkv_proj", "blk.#.attn_qkv"},
    {"model.layers.#.self_attn.q_norm", "blk.#.attn_q_norm", Norm},
    {"model.layers.#.self_attn.k_norm", "blk.#.attn_k_norm", Norm},
    {"model.layers.#.self_attn.rotary_emb.inv_freq", "", Drop},
    {"model.layers.#.post_attention_layernorm", "blk.#.ffn_norm", Norm},
    {"model.layers.#.mlp.gate_proj", "blk.#.ffn_gate"},
    {"model.layers.#.mlp.up_proj", "blk.#.ffn_up"},
    {"model.layers.#.mlp.gate_up_proj", "blk.#.ffn_up"},
    {"model.layers.#.mlp.down_proj", "blk.#.ffn_down"},
    // mixtures of experts
    {"model.layers.#.mlp.gate", "blk.#.ffn_gate_inp"},
    {"model.layers.#.mlp.experts.@.gate_proj", "blk.#.ffn_gate_exps"},
    {"model.layers.#.mlp.experts.@.up_proj", "blk.#.ffn_up_exps"},
    {"model.layers.#.mlp.experts.@.down_proj", "blk.#.ffn_down_exps"},
    {"model.layers.#.block_sparse_moe.gate", "blk.#.ffn_gate_inp"},
    {"model.layers.#.block_sparse_moe.experts.@.w1", "blk.#.ffn_gate_exps"},
    {"model.layers.#.block_sparse_moe.experts.@.w2", "blk.#.ffn_down_exps"},
    {"model.layers.#.block_sparse_moe.experts.@.w3", "blk.#.ffn_up_exps"},
    {"model.layers.#.mlp.shared_expert.gate_proj", "blk.#.ffn_gate_shexp"},
    {"model.layers.#.mlp.shared_expert.up_proj", "blk.#.ffn_up_shexp"},
    {"model.layers.#.mlp.shared_expert.down_proj", "blk.#.ffn_down_shexp"},
    {"model.layers.#.mlp.shared_expert_gate", "blk.#.ffn_gate_inp_shexp"},
    {"model.layers.#.mlp.shared_experts.gate_proj", "blk.#.ffn_gate_shexp"},
    {"model.layers.#.mlp.shared_experts.up_proj", "blk.#.ffn_up_shexp"},
    {"model.layers.#.mlp.shared_experts.down_proj", "blk.#.ffn_down_shexp"},
};

// The bias is of training, and no expert is chosen by it.
constexpr NameRule kGrove[] = {
    {"model.layers.#.mlp.chunk_experts.@.gate_proj", "blk.#.ffn_gate_chexps"},
    {"model.layers.#.mlp.chunk_experts.@.up_proj", "blk.#.ffn_up_chexps"},
    {"model.layers.#.mlp.chunk_experts.@.down_proj", "blk.#.ffn_down_chexps"},
    {"model.layers.#.mlp.expert_bias", "", Drop},
};

// Norms behind the blocks as well as before them.
constexpr NameRule kFourNorms[] = {
    {"model.layers.#.post_attention_layernorm", "blk.#.post_attention_norm", Norm},
    {"model.layers.#.pre_feedforward_layernorm", "blk.#.ffn_norm", Norm},
    {"model.layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm", Norm},
};
constexpr NameRule kSecondNormBehind[] = {
    {"model.layers.#.post_attention_layernorm", "blk.#.post_attention_norm", Norm},
    {"model.layers.#.mlp.gate.e_score_correction_bias", "blk.#.exp_probs_b.bias"},
};
constexpr NameRule kGlm4[] = {
    {"model.layers.#.post_self_attn_layernorm", "blk.#.post_attention_norm"},
    {"model.layers.#.post_mlp_layernorm", "blk.#.post_ffw_norm"},
};
constexpr NameRule kStarcoder2[] = {
    {"model.layers.#.mlp.c_fc", "blk.#.ffn_up"},
    {"model.layers.#.mlp.c_proj", "blk.#.ffn_down"},
};
constexpr NameRule kStablelm[] = {
    {"model.layers.#.self_attn.q_layernorm.norms.@", "blk.#.attn_q_norm"},
    {"model.layers.#.self_attn.k_layernorm.norms.@", "blk.#.attn_k_norm"},
};
constexpr NameRule kHunyuan[] = {
    {"model.layers.#.self_attn.query_layernorm", "blk.#.attn_q_norm"},
    {"model.layers.#.self_attn.key_layernorm", "blk.#.attn_k_norm"},
};
constexpr NameRule kPhi[] = {
    {"model.final_layernorm", "output_norm"},
    {"model.layers.#.self_attn.dense", "blk.#.attn_output"},
    {"model.layers.#.mlp.fc1", "blk.#.ffn_up"},
    {"model.layers.#.mlp.fc2", "blk.#.ffn_down"},
};
constexpr NameRule kExaone[] = {
    {"model.transformer.wte", "token_embd"},
    {"model.transformer.ln_f", "output_norm"},
    {"model.transformer.h.#.ln_1", "blk.#.attn_norm"},
    {"model.transformer.h.#.attn.attention.q_proj", "blk.#.attn_q"},
    {"model.transformer.h.#.attn.attention.k_proj", "blk.#.attn_k"},
    {"model.transformer.h.#.attn.attention.v_proj", "blk.#.attn_v"},
    {"model.transformer.h.#.attn.attention.out_proj", "blk.#.attn_output"},
    {"model.transformer.h.#.ln_2", "blk.#.ffn_norm"},
    {"model.transformer.h.#.mlp.c_fc_0", "blk.#.ffn_gate"},
    {"model.transformer.h.#.mlp.c_fc_1", "blk.#.ffn_up"},
    {"model.transformer.h.#.mlp.c_proj", "blk.#.ffn_down"},
};
constexpr NameRule kGranite[] = {
    {"model.layers.#.block_sparse_moe.router.layer", "blk.#.ffn_gate_inp"},
    {"model.layers.#.block_sparse_moe.input_linear", "blk.#.ffn_gate_exps", FirstHalf},
    {"model.layers.#.block_sparse_moe.input_linear", "blk.#.ffn_up_exps", SecondHalf},
    {"model.layers.#.block_sparse_moe.output_linear", "blk.#.ffn_down_exps"},
    {"model.layers.#.shared_mlp.input_linear", "blk.#.ffn_gate_shexp", FirstHalf},
    {"model.layers.#.shared_mlp.input_linear", "blk.#.ffn_up_shexp", SecondHalf},
    {"model.layers.#.shared_mlp.output_linear", "blk.#.ffn_down_shexp"},
};

// ---- Further numbers. Those that all have: config_keys.cpp.

// A window of more than all positions restricts nothing.
void window(ArchKeys& k) {
  const int64_t n = k.config.count({"sliding_window"}, 0);
  if (n) k.u32("attention.sliding_window", std::min(n, k.config.count({"max_position_embeddings"})));
}

// Which layers have a window: a list of their kinds, or every one but each n-th. Without either the usual
// period.
void window_pattern(ArchKeys& k, int64_t usual) {
  if (const auto kinds = k.config.texts({"layer_types"}); !kinds.empty()) {
    std::vector<uint8_t> windows;
    for (const std::string& kind : kinds) windows.push_back(kind == "sliding_attention");
    k.out.numbers(k.full("attention.sliding_window_pattern"), MetadataType::Bool,
                  std::span<const uint8_t>(windows));
    return;
  }
  const int64_t period = k.config.count({"sliding_window_pattern", "_sliding_window_pattern"}, usual);
  if (period != usual) k.u32("attention.sliding_window_pattern", period);
}

// Scores are multiplied by 1 / sqrt(query_pre_attn_scalar), which files of GGUF leave out where it is the
// size of a head.
void query_scale(ArchKeys& k) {
  const double scalar = k.config.number({"query_pre_attn_scalar"}, 0);
  if (scalar > 0 && scalar != k.config.number({"head_dim"}, 256))
    k.f32("attention.scale", 1 / std::sqrt(scalar));
}

void no_window(ArchKeys& k) {
  if (k.config.flag({"use_sliding_window"}, false))
    k.config.fail(Code::Unsupported,
                  "'use_sliding_window': layers with a window are not computed for this family");
}

void every_layer_mixed(ArchKeys& k) {
  no_window(k);
  if (!k.config.numbers({"mlp_only_layers"}).empty() || k.config.count({"decoder_sparse_step"}, 1) != 1)
    k.config.fail(Code::Unsupported,
                  "layers without experts ('mlp_only_layers', 'decoder_sparse_step') are not computed");
  if (k.config.has({"norm_topk_prob"}))
    k.flag("expert_weights_norm", k.config.flag({"norm_topk_prob"}, true));
}

// Three numbers are in the authors' code and not in config.json. Weights of experts always have the sum 1.
void grovemoe(ArchKeys& k) {
  every_layer_mixed(k);
  k.flag("expert_weights_norm", true);
  k.u32("expert_chunk_feed_forward_length", 128);
  k.u32("experts_per_group", 2);
  k.f32("expert_group_scale", 0.05);
}

void olmoe(ArchKeys& k) {
  every_layer_mixed(k);
  if (k.config.has({"clip_qkv"}))
    k.config.fail(Code::Unsupported, "'clip_qkv' is not computed for this family");
}

void phi(ArchKeys& k) {
  if (k.config.flag({"qk_layernorm"}, false))
    k.config.fail(Code::Unsupported, "'qk_layernorm': norms of q and k are not computed for this family");
}

void olmo(ArchKeys& k) {
  if (const double limit = k.config.number({"clip_qkv"}, 0); limit > 0) k.f32("attention.clamp_kqv", limit);
}

void qwen2moe(ArchKeys& k) {
  every_layer_mixed(k);
  k.u32("expert_shared_feed_forward_length", k.config.count({"shared_expert_intermediate_size"}));
}

void gemma2(ArchKeys& k) {
  window(k);
  window_pattern(k, 2);
  query_scale(k);
  k.f32("attn_logit_softcapping", k.config.number({"attn_logit_softcapping"}, 50));
  k.f32("final_logit_softcapping", k.config.number({"final_logit_softcapping"}, 30));
}

void gemma3(ArchKeys& k) {
  if (k.config.has({"attn_logit_softcapping"}))
    k.config.fail(Code::Unsupported, "'attn_logit_softcapping' is not computed for this family");
  if (k.config.flag({"use_bidirectional_attention"}, false))
    k.config.fail(Code::Unsupported, "'use_bidirectional_attention' is not computed for this family");
  window(k);
  window_pattern(k, 6);
  query_scale(k);
  k.f32("rope.freq_base_swa", k.config.number({"rope_local_base_freq"}, 10000));
  if (const double cap = k.config.number({"final_logit_softcapping"}, 0); cap > 0)
    k.f32("final_logit_softcapping", cap);
}

void granite(ArchKeys& k) {
  k.f32("embedding_scale", k.config.number({"embedding_multiplier"}, 1));
  k.f32("residual_scale", k.config.number({"residual_multiplier"}, 1));
  k.f32("logit_scale", k.config.number({"logits_scaling"}, 1));
  if (const double scale = k.config.number({"attention_multiplier"}, 0); scale > 0)
    k.f32("attention.scale", scale);
  if (const int64_t n = k.config.count({"shared_intermediate_size"}, 0))
    k.u32("expert_shared_feed_forward_length", n);
}

void minicpm(ArchKeys& k) {
  const double layers = double(k.config.count({"num_hidden_layers"}));
  k.f32("embedding_scale", k.config.number({"scale_emb"}, 1));
  k.f32("residual_scale", k.config.number({"scale_depth"}, 1) / std::sqrt(layers));
  const auto width = double(k.config.count({"hidden_size"}));
  k.f32("logit_scale", width / k.config.number({"dim_model_base"}, width));
}

void cohere(ArchKeys& k) { k.f32("logit_scale", k.config.number({"logit_scale"}, 0.0625)); }

void cohere2(ArchKeys& k) {
  cohere(k);
  window(k);
  window_pattern(k, 4);
}

void olmo3(ArchKeys& k) {
  window(k);
  window_pattern(k, 4);
}

void exaone4(ArchKeys& k) {
  window(k);
  if (k.config.has({"sliding_window"}) && k.config.count({"num_hidden_layers"}) != 64)
    k.config.fail(Code::Unsupported,
                  "a window in a model of this family with other than 64 layers is not computed");
}

void smollm3(ArchKeys& k) {
  if (k.config.count({"no_rope_layer_interval"}, 4) != 4)
    k.config.fail(Code::Unsupported, "'no_rope_layer_interval': only 4 is computed");
}

void hunyuan(ArchKeys& k) {
  ModelConfig rope = k.config.rope();
  if (const double alpha = rope.number({"alpha"}, 0); alpha > 0) k.f32("rope.scaling.alpha", alpha);
  k.config.take_error(rope);
}

void glm4moe(ArchKeys& k) {
  k.u32("leading_dense_block_count", k.config.count({"first_k_dense_replace"}, 0));
  k.u32("expert_shared_count", k.config.count({"n_shared_experts"}, 0));
  k.u32("expert_gating_func", 2);
  k.flag("expert_weights_norm", k.config.flag({"norm_topk_prob"}, true));
  k.f32("expert_weights_scale", k.config.number({"routed_scaling_factor"}, 1));
  if (const int64_t n = k.config.count({"n_group"}, 1); n > 1) {
    k.u32("expert_group_count", n);
    k.u32("expert_group_used_count", k.config.count({"topk_group"}, 1));
  }
}

constexpr const char* kGelu =
    "gelu_pytorch_tanh gelu_new gelu";  // the first of Gemma means the tanh form by all

constexpr const char* kSquaredRelu = "relu2";

constexpr Family kFamilies[] = {
    {.model_type = "llama mistral mixtral", .arch = "llama", .turns_heads = true},
    {.model_type = "qwen2", .arch = "qwen2", .more = no_window},
    {.model_type = "qwen3", .arch = "qwen3", .more = no_window},
    {.model_type = "qwen2_moe", .arch = "qwen2moe", .more = qwen2moe},
    {.model_type = "qwen3_moe", .arch = "qwen3moe", .more = every_layer_mixed},
    {.model_type = "grove_moe", .arch = "grovemoe", .names = kGrove, .more = grovemoe},
    {.model_type = "jais2", .arch = "jais2", .activations = kSquaredRelu},
    {.model_type = "xverse", .arch = "xverse", .turns_heads = true},
    {.model_type = "arcee", .arch = "arcee", .turns_heads = true, .activations = kSquaredRelu},
    {.model_type = "exaone", .arch = "exaone", .names = kExaone},
    {.model_type = "phi",
     .arch = "phi2",
     .names = kPhi,
     .more = phi,
     .activations = kGelu,
     .rotated_part = 0.5},
    {.model_type = "phi3", .arch = "phi3"},
    {.model_type = "gemma", .arch = "gemma", .norms_plus_one = true, .activations = kGelu},
    {.model_type = "gemma2",
     .arch = "gemma2",
     .names = kFourNorms,
     .more = gemma2,
     .norms_plus_one = true,
     .activations = kGelu},
    {.model_type = "gemma3_text gemma3",
     .arch = "gemma3",
     .names = kFourNorms,
     .more = gemma3,
     .norms_plus_one = true,
     .activations = kGelu},
    {.model_type = "granite", .arch = "granite", .more = granite, .turns_heads = true},
    {.model_type = "granitemoe granitemoeshared",
     .arch = "granitemoe",
     .names = kGranite,
     .more = granite,
     .turns_heads = true},
    {.model_type = "minicpm", .arch = "minicpm", .more = minicpm, .turns_heads = true},
    {.model_type = "smollm3", .arch = "smollm3", .more = smollm3, .turns_heads = true},
    {.model_type = "ernie4_5", .arch = "ernie4_5"},
    {.model_type = "seed_oss", .arch = "seed_oss", .names = kSecondNormBehind},
    {.model_type = "hunyuan_v1_dense", .arch = "hunyuan-dense", .names = kHunyuan, .more = hunyuan},
    {.model_type = "olmo", .arch = "olmo", .more = olmo, .turns_heads = true},
    {.model_type = "olmo2", .arch = "olmo2", .names = kFourNorms},
    {.model_type = "olmo3", .arch = "olmo2", .names = kFourNorms, .more = olmo3},
    {.model_type = "olmoe", .arch = "olmoe", .more = olmoe},
    {.model_type = "exaone4", .arch = "exaone4", .names = kFourNorms, .more = exaone4},
    {.model_type = "glm4", .arch = "glm4", .names = kGlm4},
    {.model_type = "glm4_moe", .arch = "glm4moe", .names = kSecondNormBehind, .more = glm4moe},
    {.model_type = "cohere", .arch = "command-r", .more = cohere},
    {.model_type = "cohere2", .arch = "cohere2", .more = cohere2},
    {.model_type = "starcoder2", .arch = "starcoder2", .names = kStarcoder2, .activations = kGelu},
    {.model_type = "stablelm", .arch = "stablelm", .names = kStablelm},
    {.model_type = "nemotron",
     .arch = "nemotron",
     .norms_plus_one = true,
     .activations = kSquaredRelu,
     .rotated_part = 0.5},
};

template <class Each>
void each_type(const Family& family, Each&& each) {
  for (std::string_view rest = family.model_type; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    each(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace

std::span<const Family> families() { return kFamilies; }
std::span<const NameRule> usual_names() { return kUsual; }

const Family* family_of(std::string_view model_type) {
  const Family* found = nullptr;
  for (const auto& all : {families(), mixture_families()})
    for (const Family& f : all)
      each_type(f, [&](std::string_view t) { found = t == model_type ? &f : found; });
  return found;
}

std::string family_names() {
  std::vector<std::string_view> all;
  for (const auto& some : {families(), mixture_families()})
    for (const Family& f : some) each_type(f, [&](std::string_view t) { all.push_back(t); });
  std::sort(all.begin(), all.end());
  std::string text;
  for (std::string_view name : all) text += format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace gimbal
