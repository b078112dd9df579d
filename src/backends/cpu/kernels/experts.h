// Mixture of experts: routing, products with the matrices of the chosen experts, and the weighted sum of
// their outputs. A prompt's rows are grouped by expert, so that each matrix is read once; the product is
// mat_mul's, so a row has the same bits as alone.
#pragma once

#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/rows.h"

// Below every candidate.
constexpr float kNotChosen = -3.4e38f;

// The index of the largest of n; `otherwise` if none is above kNotChosen.
inline int32_t place_of_largest(const float* x, int32_t n, int32_t otherwise) {
  float best = kNotChosen;
  int32_t at = otherwise;
  for (int32_t i = 0; i < n; i++)
    if (x[i] > best) best = x[i], at = i;
  return at;
}

// Keeps only the experts of the best groups; a group's score is the sum of its two best experts.
inline void leave_groups(float* choice, int32_t experts, int32_t groups, int32_t used) {
  const int32_t size = experts / groups;
  float score[gimbal::kMaxExpertGroups];
  bool kept[gimbal::kMaxExpertGroups] = {};
  for (int32_t g = 0; g < groups; g++) {
    float first = kNotChosen, second = kNotChosen;
    for (int32_t i = g * size; i < (g + 1) * size; i++) {
      if (choice[i] > first) second = first, first = choice[i];
      else if (choice[i] > second) second = choice[i];
    }
    score[g] = size > 1 ? first + second : first;
  }
  for (int32_t i = 0; i < used; i++) {
    const int32_t g = place_of_largest(score, groups, i);
    kept[g] = true, score[g] = kNotChosen;
  }
  for (int32_t i = 0; i < experts; i++)
    if (!kept[i / size]) choice[i] = kNotChosen;
}

inline void route(const CpuTask& t, int64_t begin, int64_t end) {
  const auto experts = int32_t(t.in[0]->dim[0]), k = int32_t(t.op->param.i[0]);
  const bool softmax = gimbal::Gating(t.op->param.i[1]) == gimbal::Gating::Softmax,
             normalised = t.op->param.i[2];
  const auto groups = int32_t(t.op->param.i[3]);
  const auto factor = float(t.op->param.f[0]);
  const bool by_weight = groups > 1 || t.op->inputs > 1;
  float weight[gimbal::kMaxExperts + 16], choice[gimbal::kMaxExperts];
  for (int64_t row = begin; row < end; row++) {
    const float* logits = row_of(t, 0, row, experts);
    float* y = out_row(t, row, 2 * k);
    F check = splat(0.f), sum = splat(0.f), top = splat(kNotChosen);
    for (int32_t i = 0; i < experts; i += 16) {
      const int part = experts - i < 16 ? experts - i : 16;
      const F v = load_part(logits + i, part);
      check = fma(v, splat(0.f), check);
      top = max(keep(v, 0, part, kNotChosen), top);
    }
    const F highest = splat(tree_max(top));
    for (int32_t i = 0; i < experts; i += 16) {
      const int part = experts - i < 16 ? experts - i : 16;
      const F v = load_part(logits + i, part);
      const F w = softmax ? exp(sub(v, highest)) : div(splat(1.f), add(splat(1.f), exp(sub(splat(0.f), v))));
      store(weight + i, w);
      sum = add(sum, keep(w, 0, part, 0.f));
    }
    const float wrong = tree_sum(check), total = tree_sum(sum);
    for (int32_t i = 0; i < experts; i++) {
      if (softmax) weight[i] = weight[i] / total;
      choice[i] = by_weight ? weight[i] : logits[i];
      if (t.op->inputs > 1) choice[i] += read<float>(t.x[1] + 4 * i);
    }
    if (groups > 1) leave_groups(choice, experts, groups, int32_t(t.op->param.i[4]));
    float chosen = 0;
    for (int32_t j = 0; j < k; j++) {
      const int32_t e = place_of_largest(choice, experts, j);
      choice[e] = kNotChosen;
      y[j] = weight[e], y[k + j] = float(e);
      chosen = chosen + weight[e];
    }
    for (int32_t j = 0; j < k; j++) {
      if (normalised) y[j] = y[j] / chosen;
      if (factor != 0) y[j] = y[j] * factor;
      y[j] = y[j] + wrong;
    }
  }
}

inline void combine(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t d = t.in[0]->dim[0], slots = t.in[0]->dim[1];
  for (int64_t row = begin; row < end; row++) {
    const float *x = row_of(t, 0, row, d * slots), *routes = row_of(t, 1, row, 2 * slots);
    float* y = out_row(t, row, d);
    for (int64_t i = 0; i < d; i += 16) {
      const int part = d - i < 16 ? int(d - i) : 16;
      F sum = splat(0.f);
      for (int64_t s = 0; s < slots; s++) {
        float weight = routes[s];
        if (t.op->inputs > 2) {
          const float e = routes[slots + s];
          weight = weight * read<float>(t.x[2] + 4 * (e > 0 && e < float(t.in[2]->dim[0]) ? int32_t(e) : 0));
        }
        sum = fma(splat(weight), load_part(x + s * d + i, part), sum);
      }
      store_part(y + i, sum, part);
    }
  }
}

// ---- the product

struct Experts {
  int32_t n, slots, count;  // outputs per expert; slots per row; number of experts
  int32_t tiles;            // per expert, at most
  explicit Experts(const CpuTask& t)
      : n(int32_t(t.out->dim[0])),
        slots(int32_t(t.out->dim[1])),
        count(int32_t(t.in[0]->dim[1] / n)),
        tiles(n % 16 ? (n + 15) / 16 + 1 : n / 16) {}
  int32_t blocks() const { return (tiles + kTilesOfChunk - 1) / kTilesOfChunk; }
  // The expert of the `pair`-th slot over all rows.
  int32_t of(const CpuTask& t, int64_t pair) const {
    if (t.op->inputs < 3) return int32_t(pair % slots);
    const float e = read<float>(t.x[2] + 4 * (pair / slots * 2 * slots + slots + pair % slots));
    return e > 0 && e < float(count) ? int32_t(e) : 0;
  }
};

// With one row an item is a tile of one of its experts; with several, some tiles of an expert for all rows
// that chose it.
inline CpuWork expert_work(const CpuTask& t) {
  if (t.rows < 1) return {0, 0};
  const Experts all(t);
  return {t.rows == 1 ? int64_t(all.slots) * all.tiles : int64_t(all.count) * all.blocks(),
          2.0 * double(t.in[0]->dim[0] * all.n * all.slots) * t.rows};
}

// The product with one expert's matrix, as a task for mat_mul's kernels.
struct ExpertTask {
  CpuTask task;
  gimbal_op op;
  gimbal_value weights;
  int32_t tiles = 0;
  ExpertTask(const CpuTask& t, int32_t n) : task(t), op(*t.op), weights(*t.in[0]) {
    op.inputs = t.op->inputs > 3 ? 3 : 2, weights.dim[1] = n;
  }
  void of(const CpuTask& t, int32_t expert, int64_t tile_bytes) {
    const int64_t first = expert * weights.dim[1];
    task.op = &op, task.in[0] = &weights;
    task.x[0] = t.x[0] + first / 16 * tile_bytes;
    task.x[2] = op.inputs == 3 ? t.x[3] + 4 * first : nullptr;
    task.shift = int32_t(first % 16);
    tiles = int32_t((task.shift + weights.dim[1] + 15) / 16);
  }
  // Sets the row of x and of y for the `pair`-th slot alone.
  void one(const CpuTask& t, int64_t pair, int64_t x_row, int32_t share) {
    task.rows = 1, task.row_list = nullptr;
    task.x[1] = t.x[1] + pair / share * x_row;
    task.y = t.y + 4 * pair * weights.dim[1];
  }
};

using MatMul = void (*)(const CpuTask&, int64_t begin, int64_t end);
[[gnu::noinline]] inline void expert_units(const CpuTask& t, int64_t begin, int64_t end, MatMul product,
                                           int64_t tile_bytes, int64_t x_row) {
  const Experts all(t);
  const int32_t share = t.in[1]->dim[1] == 1 ? all.slots : 1;
  ExpertTask one(t, all.n);
  if (t.rows == 1) {
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t slot = unit / all.tiles, tile = unit % all.tiles;
      one.of(t, all.of(t, slot), tile_bytes);
      one.one(t, slot, x_row, share);
      if (tile < one.tiles) product(one.task, tile, tile + 1);
    }
    return;
  }
  for (int64_t unit = begin; unit < end; unit++) {
    const auto expert = int32_t(unit / all.blocks());
    const int64_t first = unit % all.blocks() * kTilesOfChunk;
    one.of(t, expert, tile_bytes);
    const int64_t last = first + kTilesOfChunk < one.tiles ? first + kTilesOfChunk : one.tiles;
    int32_t list[kStagedRows], n = 0;
    const int64_t pairs = int64_t(t.rows) * all.slots;
    for (int64_t pair = 0; pair <= pairs && first < last; pair++) {
      if (n == kStagedRows || (pair == pairs && n)) {
        if (n == 1) {
          one.one(t, list[0], x_row, share);
        } else {
          one.task.rows = n, one.task.row_list = list, one.task.x_share = share;
          one.task.x[1] = t.x[1], one.task.y = t.y;
        }
        product(one.task, first, last);
        n = 0;
      }
      if (pair < pairs && all.of(t, pair) == expert) list[n++] = int32_t(pair);
    }
  }
}
// The number of rows per expert is known only at run time, so its kernel cannot be chosen by the table.
template <MatMul any, MatMul few>
void product_of_rows(const CpuTask& t, int64_t begin, int64_t end) {
  t.rows > 1 && t.rows <= kMaxFewRows ? few(t, begin, end) : any(t, begin, end);
}
template <class W, MatMul any, MatMul few>
void expert_mat_mul(const CpuTask& t, int64_t begin, int64_t end) {
  constexpr gimbal::DTypeInfo x = gimbal::info(W::x);
  expert_units(t, begin, end, product_of_rows<any, few>, kLayout<W::type>.tile_bytes(t.in[0]->dim[0]),
               t.in[0]->dim[0] / x.block * x.bytes);
}
