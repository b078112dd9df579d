#include "quantize/tensor_role.h"

#include <charconv>

namespace gimbal {
namespace {

bool has_part(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

// Parts of names of matrices that are small, or too delicate: routers, convolutions, RWKV's mixing,
// positions, codebooks.
constexpr std::string_view kKept[] = {"_norm.weight",
                                      "ffn_gate_inp.weight",
                                      "ffn_gate_tid2eid.weight",
                                      "altup",
                                      "laurel",
                                      "per_layer_model_proj",
                                      "ssm_conv1d",
                                      "shortconv.conv.weight",
                                      "indexer.k_proj.weight",
                                      "indexer.q_proj.weight",
                                      "time_mix_first.weight",
                                      "time_mix_w0.weight",
                                      "time_mix_w1.weight",
                                      "time_mix_w2.weight",
                                      "time_mix_v0.weight",
                                      "time_mix_v1.weight",
                                      "time_mix_v2.weight",
                                      "time_mix_a0.weight",
                                      "time_mix_a1.weight",
                                      "time_mix_a2.weight",
                                      "time_mix_g1.weight",
                                      "time_mix_g2.weight",
                                      "time_mix_decay_w1.weight",
                                      "time_mix_decay_w2.weight",
                                      "time_mix_lerp_fused.weight",
                                      "attn_rel_b.weight",
                                      ".position_embd",
                                      "sam.pos_embd",
                                      "sam.neck.",
                                      "sam.net_",
                                      ".rel_pos",
                                      ".patch_embd",
                                      ".patch_merger",
                                      "a.rvq.codebook",
                                      "mm.a.code_embd"};

}  // namespace

TensorRole role_of(std::string_view name) {
  if (name == "output.weight") return TensorRole::Output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return TensorRole::Embedding;
  constexpr struct {
    std::string_view part;
    TensorRole role;
  } kParts[] = {{"attn_qkv.weight", TensorRole::Value},
                {"attn_kv_b.weight", TensorRole::Value},
                {"attn_v.weight", TensorRole::Value},
                {"attn_k.weight", TensorRole::Key},
                {"attn_q.weight", TensorRole::Query},
                {"attn_output.weight", TensorRole::AttentionOutput},
                {"ffn_up", TensorRole::Up},
                {"ffn_gate", TensorRole::Gate},
                {"ffn_down", TensorRole::Down}};
  for (const auto& p : kParts)
    if (has_part(name, p.part)) return p.role;
  return TensorRole::Other;
}

bool is_quantizable(const StoredTensor& t) {
  if (t.dim[1] == 1 && t.dim[2] == 1 && t.dim[3] == 1) return false;
  if (!t.name.ends_with("weight") || t.name == "position_embd.weight" || t.name == "token_types.weight")
    return false;
  for (std::string_view part : kKept)
    if (has_part(t.name, part)) return false;
  return true;
}

int layer_of(std::string_view name) {
  int layer = -1;
  if (!name.starts_with("blk.")) return -1;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return error == std::errc() && end != name.data() + name.size() && *end == '.' ? layer : -1;
}

}  // namespace gimbal
