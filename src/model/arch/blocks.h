// The parts of architectures: norms, products, attention, feed-forward layers and experts, as
// functions that read a layer's weights by their names in files. An architecture combines them.
// R: the rows of a step. Widths come from the given values, so a weight of another shape is an
// error.
#pragma once
#include "model/arch.h"

namespace gimbal::arch {

enum class Bias { Optional, Needed };

// Of rows or heads [width, ..., R].
inline int width_of(Recorder& m, Value x) { return int(m.p.shape(x).dim[0]); }
// Returns n, the product of the numbers named by `what`; above kMaxCount it is an error.
int bounded(Recorder&, const std::string& what, int64_t n);

// ---- norms of x [d, ...]. `<name>.weight` [d]; `<name>.bias` [d] if present.
Value rms_norm(Recorder&, const std::string& name, Value x);
Value layer_norm(Recorder&, const std::string& name, Value x, Bias = Bias::Optional);
// Of heads [d, heads, R], each with a row of `<name>.weight` [d, heads].
Value layer_norm_by_head(Recorder&, const std::string& name, Value x);

// ---- products: `<name>.weight` [d, rows] Returns [rows, R]. Adds `<name>.bias`
// if the file has it; multiplies by the number `<name>.scale` if the file has
// it.
Value project(Recorder&, const std::string& name, int rows, Value x, Bias = Bias::Optional);
// The head of a reranker ("pooling_type" 4 in the file): `numbers` scores per row.
bool is_reranker(Recorder&);
Value ranking_head(Recorder&, int numbers, Value x);

// ---- attention
struct Attention {
  int heads, kv_heads, head_dim, value_dim;
  float scale;                   // of the scores
  int window = 0;                // positions that a row attends to, with its own; 0: all so far
  float cap = 0, alibi = 0;      // 0: none
  std::optional<Value> seen{};   // i32[2, R] in place of the window: Recorder::seen, seen_both
  std::optional<Value> sinks{};  // f32[heads], with `seen` only
  // In place of sinks, with `seen` only: of each distance up to this one to both sides
  // (ops/defs/attention.cpp).
  std::optional<Value> biases{};  // f32[(2 * distances + 1) * heads]
  int distances = 0;
  std::optional<Value> added{};  // f32[n, R] in place of `seen`: for the scores of all positions
};
// From the metadata; scores are divided by the root of head_dim.
Attention attention(const Recorder&);

struct Heads {
  Value q, k, v;  // [head_dim or value_dim, heads or kv_heads, R]
};
// From attn_q, attn_k and attn_v, or from attn_qkv, with the rows of q first, then k, then v.
Heads project_heads(Recorder&, const Attention&, Value x, Bias = Bias::Optional);
// The angles from the metadata, with its scaling.
Value rope_table(Recorder&, RopeSections = RopeSections::Blocks);
// The angles of layers with a window: from rope.freq_base_swa, not scaled.
Value window_rope_table(Recorder&);
// Whether the layer's rows attend to a window only. attention.sliding_window_pattern is a flag per layer,
// or a number n: of n layers one attends to all positions, the last or the first; by default `period`.
enum class FarLayer { Last, First };
bool has_window(Recorder&, int layer, int period, FarLayer = FarLayer::Last);
// attention.sliding_window: the positions that a row attends to, at most the trained context.
int window_size(Recorder&, std::optional<int> otherwise = {});
// x [..., R] times 1 + growth * ln(1 + floor((position + ahead) / length)): scales queries by position, so
// that attention stays equally sharp over a long context.
Value sharpened(Recorder&, Value x, double growth, int length, int ahead = 0);
// By attention.clamp_kqv: every value of q, k and v in [-limit, limit]; as they are without the key.
Heads clamped(Recorder&, const Heads&);
// Rotates q and k.
Heads rotated(Recorder&, Heads, Value table, RopePairs);
// Writes k and v into the layer's caches and attends to all of their positions; to later rows, too, if
// attention.causal is false in the file. Returns [heads * value_dim, R]. With RecordOptions::rotate, q, k and
// v are multiplied by a Hadamard matrix (ops/defs/hadamard.cpp) of the largest power of two that divides a
// head, and so is the result, which turns the values back.
Value attend(Recorder&, const Attention&, const Heads&);
// The two halves of attend(), for layers that attend to an earlier layer's keys and values.
struct Remembered {
  size_t pool;
  Value keys, values;
};
Remembered remember(Recorder&, const Attention&, const Heads&);
// The second step of remember(), into caches that exist.
void write_heads(Recorder&, const Remembered&, const Heads&, StepRows of = StepRows::All);
Value attend_to(Recorder&, const Attention&, const Remembered&, Value q, StepRows of = StepRows::All);

// ---- feed-forward layers
// activation(gate, up), or Relu(gate) * up. A limit above 0 of SwiGlu applies to silu(gate), from above, and
// to up, on both sides.
Value activated(Recorder&, OpKind activation, float limit, Value gate, Value up);
// ffn_down(activated(ffn_gate x, ffn_up x)); without ffn_gate, the first half of ffn_up's rows is the gate.
// `suffix`: appended to each name; `width`: of the hidden layer, by default feed_forward_length.
Value glu(Recorder&, Value x, OpKind activation = OpKind::SwiGlu, const std::string& suffix = "",
          int width = 0, float limit = 0);
// ffn_down(activation(ffn_up x))
Value mlp(Recorder&, Value x, OpKind activation, Bias = Bias::Optional);
int ff_width(Recorder&, int layer);  // feed_forward_length

// ---- mixtures of experts
struct Experts {
  int count, width;
  ProgramBuilder::Routing routing;
  OpKind activation = OpKind::SwiGlu;  // of one value if they have no gate
  float limit = 0;                     // of activations that have one
  bool gated = true;
};
// An architecture's defaults for keys that its files lack.
struct UsualRouting {
  Gating gating = Gating::Softmax;
  bool normalised = true;
};
// expert_count, expert_used_count, expert_feed_forward_length (or feed_forward_length), and the routing by
// expert_gating_func, expert_weights_norm, expert_weights_scale, groups. `layer`: whose width and number of
// used experts are read, in models whose layers differ.
Experts read_experts(Recorder&, UsualRouting = {}, std::optional<int> layer = {});
// The routes of each row (ops/defs/experts.cpp). `logits` [count, R]: in place of ffn_gate_inp x.
Value chosen_experts(Recorder&, const Experts&, Value x, std::optional<Value> logits = {});
// [d, k, R]: the outputs of the experts that the routes name, not weighted yet. The matrices are
// ffn_gate_exps and ffn_up_exps, or ffn_gate_up_exps with the gate first, and ffn_down_exps; `suffix`
// replaces "_exps".
Value expert_outputs(Recorder&, const Experts&, Value x, Value routes, const std::string& suffix = "_exps");
// The weighted sum of a row's chosen experts.
Value mixture(Recorder&, const Experts&, Value x, std::optional<Value> logits = {});
// An expert for every row, weighted by the gate ffn_gate_inp_shexp: glu() with the suffix
// "_shexp".
Value gated_shared_expert(Recorder&, Value x);

// ---- the two ends
// Rows of token_embd, times `scale`.
Value token_embedding(Recorder&, float scale = 1);
// n_deepstack_layers: how many of the first layers get a part of a picture's embedding each
// (Recorder::add_embedded).
int deepstack_layers(Recorder&);
// Rows of position_embd, one for each possible position. A longer context is an error.
Value position_embedding(Recorder&);
// The rows with results.
Value wanted(Recorder&, Value x);
// From normed rows: by output.weight, or by the embedding table if absent; times `scale`, capped at `cap`
// (0: no cap).
void logits(Recorder&, Value x, float scale = 1, float cap = 0);

// ---- models in which most feed-forward layers have experts: the first ones may be dense, and beside a row's
// chosen experts there may be one for all rows
struct SparseLayers {
  int dense;  // layers without experts, the first ones
  Experts experts;
  int shared;  // width of the expert for all rows; 0: none
};
// leading_dense_block_count, read_experts(), and of the expert for all rows expert_shared_feed_forward_length
// or the width of expert_shared_count experts.
SparseLayers read_sparse(Recorder&, UsualRouting = {});
// The layer's mixture() plus glu() with the suffix "_shexp"; of a dense layer glu(). A limit above 0:
// activated().
Value sparse_feed_forward(Recorder&, const SparseLayers&, int layer, Value x, float shared_limit = 0);

// ---- encoders: every row sees all others of its text, and a reranker has a head for scores

// attention(), to earlier and later rows. A file that asks for causal attention is an error.
Attention all_seen(Recorder&);
// The scores of a reranker: one number per row; the higher, the better the two parts of its text match.
// Other models: x [d, R] as it is.
Value ranked(Recorder&, Value x);

}  // namespace gimbal::arch
