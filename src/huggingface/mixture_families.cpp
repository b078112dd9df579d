// table: of further families with experts. Names and keys follow transformers' modeling files on one side,
// and gguf-py's constants on the other.
#include <algorithm>

#include "base/fixed_math.h"
#include "huggingface/families.h"

namespace gimbal {
namespace {

using enum Turn;

constexpr NameRule kDots1[] = {
    {"model.layers.#.mlp.gate.e_score_correction_bias", "blk.#.exp_probs_b.bias"},
};
constexpr NameRule kErnie[] = {
    {"model.layers.#.mlp.moe_statics.e_score_correction_bias", "blk.#.exp_probs_b.bias"},
};
constexpr NameRule kMinimaxM2[] = {
    {"model.layers.#.block_sparse_moe.e_score_correction_bias", "blk.#.exp_probs_b.bias"},
};
constexpr NameRule kHunyuanMoe[] = {
    {"model.layers.#.self_attn.query_layernorm", "blk.#.attn_q_norm"},
    {"model.layers.#.self_attn.key_layernorm", "blk.#.attn_k_norm"},
    {"model.layers.#.mlp.gate.wg", "blk.#.ffn_gate_inp"},
    {"model.layers.#.mlp.shared_mlp.gate_proj", "blk.#.ffn_gate_shexp"},
    {"model.layers.#.mlp.shared_mlp.up_proj", "blk.#.ffn_up_shexp"},
    {"model.layers.#.mlp.shared_mlp.down_proj", "blk.#.ffn_down_shexp"},
};
constexpr NameRule kAfmoe[] = {
    {"model.layers.#.post_attention_layernorm", "blk.#.post_attention_norm"},
    {"model.layers.#.pre_mlp_layernorm", "blk.#.ffn_norm"},
    {"model.layers.#.post_mlp_layernorm", "blk.#.post_ffw_norm"},
    {"model.layers.#.self_attn.gate_proj", "blk.#.attn_gate"},
    {"model.layers.#.mlp.router.gate", "blk.#.ffn_gate_inp"},
    {"model.layers.#.mlp.expert_bias", "blk.#.exp_probs_b.bias"},
};

void dots1(ArchKeys& k) {
  const auto kinds = k.config.texts({"layer_types"});
  if (std::find(kinds.begin(), kinds.end(), "sliding_attention") != kinds.end() ||
      k.config.count({"max_window_layers"}, 1 << 20) < k.config.count({"num_hidden_layers"}))
    k.config.fail(Code::Unsupported, "layers with a window are not computed for this family");
  k.u32("leading_dense_block_count", k.config.count({"first_k_dense_replace"}, 0));
  k.u32("expert_shared_count", k.config.count({"n_shared_experts"}, 0));
  k.u32("expert_gating_func", 2);
  k.flag("expert_weights_norm", k.config.flag({"norm_topk_prob"}, false));
  k.f32("expert_weights_scale", k.config.number({"routed_scaling_factor"}, 1));
  if (const int64_t n = k.config.count({"n_group"}, 1); n > 1) {
    k.u32("expert_group_count", n);
    k.u32("expert_group_used_count", k.config.count({"topk_group"}, 1));
  }
}

void ernie4_5_moe(ArchKeys& k) {
  const int64_t layers = k.config.count({"num_hidden_layers"});
  const double end = k.config.number({"moe_layer_end_index"}, -1);
  if (end >= 0 && end != double(layers - 1))
    k.config.fail(Code::Unsupported,
                  "'moe_layer_end_index': dense layers behind those with experts are not "
                  "computed");
  k.u32("leading_dense_block_count", k.config.count({"moe_layer_start_index"}, 1));
  k.u32("interleave_moe_layer_step", k.config.count({"moe_layer_interval"}, 1));
  k.u32("expert_shared_feed_forward_length",
        k.config.count({"moe_num_shared_experts"}, 0) * k.config.count({"moe_intermediate_size"}));
}

void minimax_m2(ArchKeys& k) {
  k.u32("expert_feed_forward_length", k.config.count({"intermediate_size"}));
  k.u32("expert_gating_func", 2);
  if (k.config.has({"rotary_dim"})) k.u32("rope.dimension_count", k.config.count({"rotary_dim"}));
}

void hunyuan_moe(ArchKeys& k) {
  const int64_t width = k.config.count({"intermediate_size"});
  if (!k.config.has({"moe_intermediate_size"})) k.u32("expert_feed_forward_length", width);
  k.u32("expert_shared_feed_forward_length", k.config.count_for_all({"num_shared_expert"}, 1) * width);
  // Long contexts come from a larger base.
  ModelConfig rope = k.config.rope();
  const double alpha = rope.number({"alpha"}, 0),
               base = rope.number({"rope_theta"}, k.config.number({"rope_theta"}, 10000));
  const int64_t heads = std::max<int64_t>(1, k.config.count({"num_attention_heads"}));
  const auto head = double(k.config.count({"head_dim"}, k.config.count({"hidden_size"}) / heads));
  if (alpha > 0 && head > 2) k.f32("rope.freq_base", base * fixed::pow(alpha, head / (head - 2)));
  k.config.take_error(rope);
}

void afmoe(ArchKeys& k) {
  if (!k.config.flag({"mup_enabled"}, false))
    k.config.fail(Code::Unsupported, "'mup_enabled': models without it are not computed");
  if (const int64_t n = k.config.count({"global_attn_every_n_layers"}, 4); n != 4)
    k.config.fail(Code::Unsupported, "'global_attn_every_n_layers': only 4 is computed");
  const auto kinds = k.config.texts({"layer_types"});
  for (size_t i = 0; i < kinds.size(); i++)
    if ((kinds[i] == "sliding_attention") != ((i + 1) % 4 != 0))
      k.config.fail(Code::Unsupported,
                    "'layer_types': computed are three layers with a window before each "
                    "one without");
  k.u32("attention.sliding_window",
        std::min(k.config.count({"sliding_window"}, 1024), k.config.count({"max_position_embeddings"})));
  k.u32("leading_dense_block_count", k.config.count({"num_dense_layers"}, 1));
  k.u32("expert_shared_count", k.config.count({"num_shared_experts"}, 2));
  k.u32("expert_gating_func", 2);
  k.flag("expert_weights_norm", k.config.flag({"route_norm"}, true));
  k.f32("expert_weights_scale", k.config.number({"route_scale"}, 1));
}

constexpr Family kMixtures[] = {
    {.model_type = "dots1", .arch = "dots1", .names = kDots1, .more = dots1},
    {.model_type = "ernie4_5_moe", .arch = "ernie4_5-moe", .names = kErnie, .more = ernie4_5_moe},
    {.model_type = "minimax_m2", .arch = "minimax-m2", .names = kMinimaxM2, .more = minimax_m2},
    {.model_type = "hunyuan_v1_moe", .arch = "hunyuan-moe", .names = kHunyuanMoe, .more = hunyuan_moe},
    {.model_type = "afmoe", .arch = "afmoe", .names = kAfmoe, .more = afmoe},
};

}  // namespace

std::span<const Family> mixture_families() { return kMixtures; }

}  // namespace gimbal
