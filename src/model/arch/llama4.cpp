// Llama 4: three layers in four attend within chunks, rotated; the fourth attends to everything, without
// rotation. Experts, whose weights multiply their inputs, beside one for every row.
// Meta, "The Llama 4 herd: The beginning of a new era of natively multimodal AI innovation", 2025.
#include <cstring>

#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kChunk = 8192;      // positions
constexpr int kLlama4Period = 4;  // every fourth layer attends to all positions
constexpr double kGrowth = 0.1;   // of its queries

// First and last position that a row sees: those of its chunk up to its own.
Value seen_in_chunk(Recorder& m) {
  return m.row_input("seen in chunk", DType::I32, 2, [](const StepRow& r, std::byte* to) {
    const int32_t seen[] = {r.position / kChunk * kChunk, r.position};
    std::memcpy(to, seen, sizeof seen);
  });
}

struct Llama4Kind {
  Attention attention;
  std::optional<Value> angles;
};

Heads heads(Recorder& m, const Llama4Kind& kind, bool grows, bool normed, Value x) {
  ProgramBuilder& p = m.p;
  Heads h = project_heads(m, kind.attention, x);
  if (kind.angles) {
    h = rotated(m, h, *kind.angles, RopePairs::Adjacent);
    if (normed) {
      h.q = p.norm(h.q, NormKind::Rms, m.config.norm_epsilon);
      h.k = p.norm(h.k, NormKind::Rms, m.config.norm_epsilon);
    }
  } else if (grows) {
    h.q = sharpened(m, h.q, kGrowth, kChunk, 1);
  }
  return h;
}

// The weights of a row's experts multiply their inputs.
Value weighted_inputs(Recorder& m, const Experts& e, Value x) {
  ProgramBuilder& p = m.p;
  const int width = m.config.width, k = e.routing.k;
  const Value routes = p.route(project(m, "ffn_gate_inp", e.count, x), e.routing);
  auto product = [&](const char* name, int rows, Value y) {
    return m.expert_product(name, rows, e.count, y, routes);
  };
  auto weighted = [&](int slot) { return p.mul(x, p.slice(routes, slot, 1)); };
  Value inputs = weighted(0);
  for (int slot = 1; slot < k; slot++)
    inputs =
        p.join_heads(p.concat(p.split_heads(inputs, slot * width), p.split_heads(weighted(slot), width)));
  if (k > 1) inputs = p.split_heads(inputs, width);
  const Value gate = product("ffn_gate_exps", e.width, inputs), up = product("ffn_up_exps", e.width, inputs);
  const Value out = p.join_heads(product("ffn_down_exps", width, p.swiglu(gate, up)));
  if (k == 1) return out;
  Value sum = p.slice(out, 0, width);
  for (int slot = 1; slot < k; slot++) sum = p.add(sum, p.slice(out, slot * width, width));
  return sum;
}

Experts read_llama4_experts(Recorder& m) {
  Experts e = read_experts(m);
  e.routing.gating = Gating::Sigmoid, e.routing.normalised = false;
  return e;
}

void record_llama4(Recorder& m) {
  ProgramBuilder& p = m.p;
  // A window of 0 is that of models without chunks, all of whose layers rotate; another one is not in files.
  const int window = m.hyper.count("attention.sliding_window", kChunk, 0);
  if (window != 0 && window != kChunk)
    m.hyper.fail(Code::Unsupported, "llama4.attention.sliding_window is " + std::to_string(window) +
                                        "; this version computes chunks of 8192, or none (0)");
  const bool chunks = window != 0;
  const Llama4Kind all{attention(m), chunks ? std::nullopt : std::optional(rope_table(m))};
  Llama4Kind local{attention(m), rope_table(m)};
  if (chunks) local.attention.window = kChunk, local.attention.seen = seen_in_chunk(m);
  const int step = m.hyper.count("interleave_moe_layer_step", {}, 0);
  const Experts experts = read_llama4_experts(m);
  // The model of 128 experts has no such norms, and no key for that.
  const bool normed = experts.count != 128;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const Llama4Kind& kind = has_window(m, i, kLlama4Period) ? local : all;
    const Heads h = heads(m, kind, chunks, normed, rms_norm(m, "attn_norm", x));
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, kind.attention, h)));

    const Value y = rms_norm(m, "ffn_norm", x);
    const bool mixed = step > 0 && (i + 1) % step == 0;
    x = p.add(
        x, mixed ? p.add(weighted_inputs(m, experts, y), glu(m, y, OpKind::SwiGlu, "_shexp", experts.width))
                 : glu(m, y));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch llama4;
const ModelArch llama4{"llama4", record_llama4};

}  // namespace gimbal::arch
