// RWKV 6: a state whose keys decay each at a rate of the row's own. Peng et al., "Eagle and Finch: RWKV with
// Matrix-Valued States and Dynamic Recurrence", 2024. In Qwen 2.5 in place of attention it is QRWKV 6:
// Goldstein et al., "RADLADS: Rapid Attention Distillation to Linear Attention Decoders at Scale", 2025.
#include <cmath>

#include "model/arch/rwkv.h"

namespace gimbal::arch {
namespace {

// A row's mixtures with the row before it, one for each use; their shares depend on the row.
struct Mixtures {
  Value w, k, v, r, g;
};
Mixtures mixtures(Recorder& m, Value x, Value back) {
  ProgramBuilder& p = m.p;
  const int d = width_of(m, x), rank = m.hyper.count("time_mix_extra_dim");
  const Value shares =
      p.map(OpKind::SoftCap,
            project(m, "time_mix_w1", 5 * rank, blended(m, x, back, m.vector("time_mix_lerp_x.weight", d))),
            1);  // tanh
  const bool together = m.has("time_mix_lerp_fused.weight");
  const auto one = [&](int i, const char* name) {
    const Value usual = together ? m.row("time_mix_lerp_fused.weight", d, i, 5)
                                 : m.vector(std::string("time_mix_lerp_") + name + ".weight", d);
    const Value share = m.one_product("time_mix_w2", d, i, 5, p.slice(shares, i * rank, rank), usual);
    return p.add(x, p.mul(share, back));
  };
  const Value w = one(0, "w"), k = one(1, "k"), v = one(2, "v"), r = one(3, "r");
  return {w, k, v, r, one(4, "g")};
}

// The factor of each key of each head: exp(-exp(time_mix_decay + ...)).
Value decay(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  const int d = width_of(m, x), rank = m.hyper.count("time_decay_extra_dim");
  const Value few = p.map(OpKind::SoftCap, project(m, "time_mix_decay_w1", rank, x), 1);  // tanh
  const Value rate = m.product("time_mix_decay_w2", 0, d, d, few, m.vector("time_mix_decay.weight", d));
  return p.map(OpKind::Exp, p.scale(p.map(OpKind::Exp, rate), -1));
}

struct Rule {
  bool before, complement;  // ops/defs/gated_rule.cpp
};
Value rule(Recorder& m, const WkvSizes& s, Value r, Value w, Value k, Value v, Rule how) {
  const LayerState seen = layer_state(m, "wkv", int64_t(s.head) * m.config.width);
  return m.p.record(OpKind::GatedRule,
                    {r, m.p.split_heads(w, s.head), k, v, seen.values, seen.sequences, seen.pages},
                    {{}, {how.before, how.complement}});
}

Value time_mix(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  const WkvSizes s = read_wkv(m);
  const int d = m.config.width;
  const Mixtures mixed = mixtures(m, x, step_back(m, "step", x));
  const auto heads = [&](const char* name, Value y) { return p.split_heads(project(m, name, d, y), s.head); };
  const Value r = heads("time_mix_receptance", mixed.r), k = heads("time_mix_key", mixed.k),
              v = heads("time_mix_value", mixed.v);
  const Value g = project(m, "time_mix_gate", d, mixed.g);
  // The row's own key is not in the state that it reads: it counts by a factor of its own.
  const Value own = m.head_product("time_mix_first.weight", p.mul(r, k));
  const Value y = p.add(rule(m, s, r, decay(m, mixed.w), k, v, {true, false}), p.mul(v, own));
  return project(m, "time_mix_output", d, p.swiglu(g, normed_heads(m, y)));
}

Value gated_channel_mix(Recorder& m, Value x) {
  const int d = width_of(m, x);
  const Value back = step_back(m, "channel step", x);
  const auto part = [&](const char* name) { return blended(m, x, back, m.vector(name, d)); };
  const Value gate =
      m.p.map(OpKind::Sigmoid, project(m, "channel_mix_receptance", d, part("channel_mix_lerp_r.weight")));
  return m.p.mul(gate, channel_mix(m, part("channel_mix_lerp_k.weight")));
}

void record_rwkv6(Recorder& m) {
  const int period = m.hyper.count("rescale_every_n_layers", 0, 0);
  record_rwkv(m, [=](Recorder& m, int layer, Value x) {
    x = m.p.add(x, time_mix(m, layer_norm(m, "attn_norm", x)));
    x = m.p.add(x, gated_channel_mix(m, layer_norm(m, "attn_norm_2", x)));
    // The layers' matrices in the file are divided accordingly.
    return period && (layer + 1) % period == 0 ? m.p.scale(x, 0.5f) : x;
  });
}

// Heads share keys and values in blocks. No factor for the row's own key, no norm.
Value qwen_mix(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  const WkvSizes s = read_wkv(m);
  const int d = m.config.width, few = m.hyper.count("attention.head_count_kv", s.heads, 0);
  const int shared = few ? few : s.heads;
  if (s.heads % shared) {
    m.hyper.fail(Code::Malformed, m.config.arch + ".attention.head_count_kv " + std::to_string(shared) +
                                      " does not divide the " + std::to_string(s.heads) +
                                      " heads of the state");
    return x;
  }
  const Mixtures mixed = mixtures(m, x, step_back(m, "step", x));
  const Value r = project(m, "time_mix_receptance", d, mixed.r);
  const Value k = project(m, "time_mix_key", shared * s.head, mixed.k),
              v = project(m, "time_mix_value", shared * s.head, mixed.v);
  const Value g = p.map(OpKind::Sigmoid, project(m, "time_mix_gate", d, mixed.g));
  const Value q = p.split_heads(p.scale(r, float(1 / std::sqrt(double(s.head)))), s.head);
  const Value y =
      rule(m, s, q, decay(m, mixed.w), p.split_heads(k, s.head), p.split_heads(v, s.head), {false, true});
  return project(m, "time_mix_output", d, p.mul(p.join_heads(y), g));
}

void record_rwkv6_in_qwen(Recorder& m) { record_rwkv_in_llama(m, qwen_mix); }

}  // namespace

extern const ModelArch rwkv6, rwkv6qwen2;
const ModelArch rwkv6{"rwkv6", record_rwkv6, without_attention};
const ModelArch rwkv6qwen2{"rwkv6qwen2", record_rwkv6_in_qwen, without_attention};

}  // namespace gimbal::arch
