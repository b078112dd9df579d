// RWKV 7: the state forgets by key, and each row takes out what an erased key finds in it. Peng et al.,
// "RWKV-7 'Goose' with Expressive Dynamic State Evolution", 2025. In Qwen 2.5 in place of attention: Yueyu et
// al., "ARWKV: Pretrain is not what we need, an RNN-Attention-Based Language Model Born from Transformer",
// 2025.
#include <algorithm>

#include "model/arch/rwkv.h"

namespace gimbal::arch {
namespace {

// `<name>0` + `<name>2` inner(`<name>1` x): a product of low rank.
Value low_rank(Recorder& m, const std::string& name, Value x, std::optional<OpKind> inner = {}) {
  const int d = width_of(m, x), rank = std::max(1, m.rows(name + "1.weight"));
  Value few = project(m, name + "1", rank, x);
  if (inner) few = m.p.map(*inner, few, *inner == OpKind::SoftCap ? 1 : 0);
  const bool added = m.has(name + "0.weight");
  return m.product(name + "2", 0, d, d, few,
                   added ? std::optional(m.vector(name + "0.weight", d)) : std::nullopt);
}

// `first`: the values of the first layer, to which those of the others are drawn.
Value time_mix(Recorder& m, Value x, std::optional<Value>& first) {
  ProgramBuilder& p = m.p;
  const WkvSizes s = read_wkv(m);
  const int d = m.config.width;
  const bool gated = m.has("time_mix_g1.weight");
  const Value back = step_back(m, "step", x);
  const auto mixed = [&](int i) {
    return blended(m, x, back, m.row("time_mix_lerp_fused.weight", d, i, gated ? 6 : 5));
  };
  const auto heads = [&](Value y) { return p.split_heads(y, s.head); };
  const Value r = project(m, "time_mix_receptance", d, mixed(0));
  // At the least e^-e^-0.5 of the state remains: 0.606531 is e^-0.5.
  const Value rate = low_rank(m, "time_mix_w", mixed(1), OpKind::SoftCap);
  const Value decay = p.map(OpKind::Exp, p.scale(p.map(OpKind::Sigmoid, rate), -0.606531f));
  Value k = project(m, "time_mix_key", d, mixed(2));
  const Value of_value = mixed(3);
  Value v = project(m, "time_mix_value", d, of_value);
  if (first) {
    v = p.add(v, p.mul(minus(m, *first, v), p.map(OpKind::Sigmoid, low_rank(m, "time_mix_v", of_value))));
  } else {
    first = v;
    for (const char* part : {"time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight"})
      m.leave_out(part);
  }
  const Value a = p.map(OpKind::Sigmoid, low_rank(m, "time_mix_a", mixed(4)));
  const Value erased = p.norm(heads(times(m, k, "time_mix_k_k")), NormKind::Length, 1e-24f);
  const Value kept = times(m, k, "time_mix_k_a");
  k = p.add(k, minus(m, p.mul(a, kept), kept));
  const LayerState seen = layer_state(m, "wkv", int64_t(s.head) * d);
  const Value erase = p.concat(p.scale(erased, -1), p.mul(erased, heads(a)));
  Value y = p.record(OpKind::GatedRule, {heads(r), heads(decay), heads(k), heads(v), seen.values,
                                         seen.sequences, seen.pages, erase});
  y = m.has("time_mix_ln.weight") ? normed_heads(m, y) : p.join_heads(y);
  const Value own = m.head_product("time_mix_r_k.weight", p.mul(heads(k), heads(r)));
  y = p.add(y, p.join_heads(p.mul(heads(v), own)));
  if (gated) y = p.mul(y, low_rank(m, "time_mix_g", mixed(5), OpKind::Sigmoid));
  return project(m, "time_mix_output", d, y);
}

void record_rwkv7(Recorder& m) {
  std::optional<Value> first;
  record_rwkv(m, [&](Recorder& m, int, Value x) {
    x = m.p.add(x, time_mix(m, layer_norm(m, "attn_norm", x), first));
    const Value y = layer_norm(m, "attn_norm_2", x);
    const Value weights = m.vector("channel_mix_lerp_k.weight", m.config.width);
    return m.p.add(x, channel_mix(m, blended(m, y, step_back(m, "channel step", y), weights)));
  });
}

void record_arwkv7(Recorder& m) {
  std::optional<Value> first;
  record_rwkv_in_llama(m, [&](Recorder& m, Value x) { return time_mix(m, x, first); });
}

}  // namespace

extern const ModelArch rwkv7, arwkv7;
const ModelArch rwkv7{"rwkv7", record_rwkv7, without_attention};
const ModelArch arwkv7{"arwkv7", record_arwkv7, without_attention};

}  // namespace gimbal::arch
