// What architectures are made of: norms, products, attention, feed-forward layers and experts, as functions
// that read a layer's weights by the names they have in files. An architecture says how they follow each
// other. Rows of a step are written R; widths are those of the values given, so a weight of another shape is
// an error.
#pragma once
#include "model/arch.h"

namespace gimbal::arch {

enum class Bias { Optional, Needed };

// Of rows or heads [width, ..., R].
inline int width_of(Recorder& m, Value x) { return int(m.p.shape(x).dim[0]); }
// n, which `what` make as a product; more than any model has (kMaxCount) is an error.
int bounded(Recorder&, const std::string& what, int64_t n);

// ---- norms of x [d, ...]. `<name>.weight` [d]; `<name>.bias` [d] where the file has it.
Value rms_norm(Recorder&, const std::string& name, Value x);
Value layer_norm(Recorder&, const std::string& name, Value x, Bias = Bias::Optional);
// Of heads [d, heads, R], each with a row of `<name>.weight` [d, heads].
Value layer_norm_by_head(Recorder&, const std::string& name, Value x);

// ---- products: `<name>.weight` [d, rows]
// Gives [rows, R]. Adds `<name>.bias` where the file has it; multiplies by the number `<name>.scale` where it
// has that.
Value project(Recorder&, const std::string& name, int rows, Value x, Bias = Bias::Optional);
// The head of a reranker, whose file says "pooling_type" 4: so many numbers of a row.
bool is_reranker(Recorder&);
Value ranking_head(Recorder&, int numbers, Value x);

// ---- attention
struct Attention {
  int heads, kv_heads, head_dim, value_dim;
  float scale;                   // of the scores
  int window = 0;                // positions that a row sees, its own counted; 0: all up to its own
  float cap = 0, alibi = 0;      // 0: none
  std::optional<Value> seen{};   // i32[2, R] in place of the window: Recorder::seen, seen_both
  std::optional<Value> sinks{};  // f32[heads], with `seen` only
};
// As the metadata says; scores are divided by the root of head_dim.
Attention attention(const Recorder&);

struct Heads {
  Value q, k, v;  // [head_dim or value_dim, heads or kv_heads, R]
};
// From attn_q, attn_k and attn_v, or from attn_qkv, whose rows are all of q, then k, then v.
Heads project_heads(Recorder&, const Attention&, Value x, Bias = Bias::Optional);
// The angles that the metadata names, with its scaling.
Value rope_table(Recorder&);
// Those of layers with a window: of rope.freq_base_swa, not scaled.
Value window_rope_table(Recorder&);
// Whether the layer's rows see a window only: attention.sliding_window_pattern says so for each layer, or it
// is the number n of layers of which the last sees all; by default `period`.
bool has_window(Recorder&, int layer, int period);
// attention.sliding_window: how many positions a row sees, at most those that the model was trained on.
int window_size(Recorder&, std::optional<int> otherwise = {});
// x [..., R] times 1 + growth * ln(1 + floor((position + ahead) / length)): queries that grow with their
// position, so that attention stays as sharp over a long context.
Value sharpened(Recorder&, Value x, double growth, int length, int ahead = 0);
// q and k turned.
Heads rotated(Recorder&, Heads, Value table, RopePairs);
// Writes k and v into the layer's caches, and attends to all that is there; to later rows, too, where the
// file says that attention.causal is false. Gives [heads * value_dim, R].
Value attend(Recorder&, const Attention&, const Heads&);
// The two halves of it, for layers that attend to what an earlier one of the same kind remembers.
struct Remembered {
  size_t pool;
  Value keys, values;
};
Remembered remember(Recorder&, const Attention&, const Heads&);
Value attend_to(Recorder&, const Attention&, const Remembered&, Value q);

// ---- feed-forward layers
// ffn_down(activation(ffn_gate x, ffn_up x)); without ffn_gate the first half of ffn_up's rows is the gate.
// `suffix` behind each name; `width`: of the hidden layer, by default feed_forward_length.
Value glu(Recorder&, Value x, OpKind activation = OpKind::SwiGlu, const std::string& suffix = "",
          int width = 0);
// ffn_down(activation(ffn_up x))
Value mlp(Recorder&, Value x, OpKind activation, Bias = Bias::Optional);
int ff_width(Recorder&, int layer);  // feed_forward_length

// ---- mixtures of experts
struct Experts {
  int count, width;
  ProgramBuilder::Routing routing;
  OpKind activation = OpKind::SwiGlu;
  float limit = 0;  // of an activation that has one
};
// What an architecture does where its files do not say.
struct UsualRouting {
  Gating gating = Gating::Softmax;
  bool normalised = true;
};
// expert_count, expert_used_count, expert_feed_forward_length (or feed_forward_length), and of the routing
// what the metadata says: expert_gating_func, expert_weights_norm, expert_weights_scale, groups.
Experts read_experts(Recorder&, UsualRouting = {});
// Each row's best experts of ffn_gate_exps (or ffn_gate_up_exps, gate first), ffn_up_exps, ffn_down_exps.
// `logits` [count, R]: in place of ffn_gate_inp x.
Value mixture(Recorder&, const Experts&, Value x, std::optional<Value> logits = {});
// An expert that serves every row, as far as the gate ffn_gate_inp_shexp lets it: glu() with "_shexp" behind
// the names.
Value gated_shared_expert(Recorder&, Value x);

// ---- the two ends
// Rows of token_embd, times `scale`.
Value token_embedding(Recorder&, float scale = 1);
// Rows of position_embd, one for each position that there can be. A longer context is an error.
Value position_embedding(Recorder&);
// The rows that a result is wanted of.
Value wanted(Recorder&, Value x);
// From normed rows: by output.weight, or the embedding table where there is none; times `scale`, capped at
// `cap` (0: not).
void logits(Recorder&, Value x, float scale = 1, float cap = 0);

}  // namespace gimbal::arch
