// Attention over a paged KV cache. Keys are processed in tiles of one page (64 positions), so the result of a
// row depends only on its position, not on the batch or on how the prompt was split. Neighbouring rows share
// a pass over the cache: keys and values of a page that several of them see (rows of one sequence, or of
// sequences that share it) are decoded once.
#pragma once

#include "backends/cpu/kernels/attention_page.h"
#include "backends/cpu/kernels/attention_weights.h"

inline int32_t position_of(const CpuTask& t, int64_t row) { return read<int32_t>(t.x[3] + 4 * row); }
// The positions that a row sees.
struct Seen {
  int32_t first, last;
};
inline Seen seen_by(const CpuTask& t, int64_t row) {
  if (t.op->inputs > 6 && !t.op->param.i[4])
    return {read<int32_t>(t.x[6] + 8 * row), read<int32_t>(t.x[6] + 8 * row + 4)};
  const int64_t window = t.op->param.i[1];
  const int32_t own = position_of(t, row);
  return {int32_t(window > 0 && own >= window ? own - window + 1 : 0), own};
}

constexpr int kRowsTogether = 8;

// A work item is a KV head and a row; neighbouring items are rows.
inline CpuWork attention_work(const CpuTask& t) {
  double positions = 0;
  for (int32_t r = 0; r < t.rows; r++) positions += seen_by(t, r).last + 1;
  return {t.rows * t.in[1]->dim[1],
          2.0 * double((t.in[0]->dim[0] + t.out->dim[0]) * t.in[0]->dim[1]) * positions};
}

// The kernels of a cache format, for 1, 2, 4 .. queries at once.
struct PageKernels {
  void (*scores[kSizes])(const Page&, const float* q, int32_t stride, float (*score)[kPagePositions]);
  void (*weigh[kSizes])(const Page&, const float (*weight)[kPagePositions], const float* fade, float* sum,
                        int32_t queries);
};
template <class R, int Size = 0>
constexpr PageKernels page_kernels(PageKernels k = {}) {
  if constexpr (Size < kSizes) {
    k.scores[Size] = scores_of_page<R, 1 << Size>, k.weigh[Size] = weigh_page<R, 1 << Size>;
    return page_kernels<R, Size + 1>(k);
  } else {
    return k;
  }
}
// The kernel size for n queries or the first of them: one nearly full kernel is cheaper than two.
inline int size_for(int n) {
  int size = 0;
  while (size + 1 < kSizes && 4 << size < 3 * n) size++;
  return size;
}

// Some heads of some rows: their queries and their running softmax.
struct Block {
  static constexpr int kFloats = 8 * gimbal::kMaxHeadDim;  // of q, of sum

  const CpuTask& t;
  const PageKernels& kernels;
  const Pages pages;
  const int64_t kv_heads, key_head, value_head;
  Page page;
  int64_t row, head, kv;  // the first row, the first head
  int rows, heads;
  Seen seen[kMostQueries];
  int32_t sequence[kMostQueries];
  Queries of;
  // Dimension d of query i is q[d * queries + i]; larger kernels read beyond it.
  alignas(64) float q[kFloats + kQueriesTogether];
  alignas(64) float score[kMostQueries + kQueriesTogether][kPagePositions];
  alignas(64) float sum[kFloats];

  Block(const CpuTask& task, const PageKernels& k)
      : t(task),
        kernels(k),
        pages(pages_of(t, 5)),
        kv_heads(t.in[1]->dim[1]),
        key_head(head_bytes(*t.in[1])),
        value_head(head_bytes(*t.in[2])) {
    page.hd = int32_t(t.in[0]->dim[0]), page.vd = int32_t(t.out->dim[0]);
    page.key_lines = int32_t(key_head / 64), page.value_lines = int32_t(value_head / 64);
    of.scale = float(t.op->param.f[0]), of.cap = float(t.op->param.f[1]);
    of.distances = int32_t(t.op->param.i[3]);
  }

  int32_t vectors() const { return (page.vd + 15) / 16; }
  // The capacity in queries.
  int most() const {
    const int32_t widest = page.hd > 16 * vectors() ? page.hd : 16 * vectors(), fit = kFloats / widest;
    return fit < kMostQueries ? fit / 8 * 8 : kMostQueries;
  }

  void begin() {
    const int queries = rows * heads;
    const auto all_heads = int32_t(t.in[0]->dim[1]);
    const auto alibi = float(t.op->param.f[2]);
    for (int i = 0; i < queries; i++) {
      const int64_t r = row + i / heads, h = head + i % heads;
      const auto* x = reinterpret_cast<const float*>(t.x[0]) + (r * all_heads + h) * page.hd;
      for (int32_t d = 0; d < page.hd; d++) q[d * queries + i] = x[d];
      of.position[i] = position_of(t, r);
      of.added[i] = t.op->param.i[4] ? reinterpret_cast<const float*>(t.x[6]) + r * t.in[6]->dim[0] : nullptr;
      of.slope[i] = alibi > 0 ? alibi_slope(alibi, int32_t(h), all_heads) : 0;
      of.highest[i] = -__builtin_inff(), of.total[i] = 0;
      if (of.distances > 0) {
        of.bias[i] = reinterpret_cast<const float*>(t.x[7]) + h * (2 * of.distances + 1);
      } else if (t.op->inputs > 7) {  // a score before all others: the sink
        of.highest[i] = read<float>(t.x[7] + 4 * h);
        of.total[i] = of.highest[i] * 0 + 1;
      }
    }
    for (int i = 0; i < queries * vectors(); i++) store(sum + 16 * i, splat(0.f));
    for (int r = 0; r < rows; r++)
      seen[r] = seen_by(t, row + r), sequence[r] = read<int32_t>(t.x[4] + 4 * (row + r));
  }

  // The part of the page at position `base` that a row sees. Number -1: none.
  struct Part {
    int64_t number;
    int32_t from, to;
    bool operator==(const Part& o) const { return number == o.number && from == o.from && to == o.to; }
  };
  Part part(int r, int32_t base) const {
    if (base + kPagePositions <= seen[r].first || base > seen[r].last) return {-1, 0, 0};
    const int32_t from = seen[r].first - base, to = seen[r].last - base + 1;
    return {pages(sequence[r], base), from > 0 ? from : 0, to < kPagePositions ? to : kPagePositions};
  }

  void attend() {
    int32_t first = seen[0].first, last = seen[0].last;
    for (int r = 1; r < rows; r++) {
      if (seen[r].first < first) first = seen[r].first;
      if (seen[r].last > last) last = seen[r].last;
    }
    for (int32_t base = first / kPagePositions * kPagePositions; base <= last; base += kPagePositions)
      for (int r = 0, end; r < rows; r = end) {
        const Part same = part(r, base);
        for (end = r + 1; end < rows && part(end, base) == same;) end++;
        if (same.number < 0) continue;
        const int64_t next = part(r, base + kPagePositions).number;
        page.keys = t.x[1] + (same.number * kv_heads + kv) * key_head;
        page.values = t.x[2] + (same.number * kv_heads + kv) * value_head;
        page.next_keys = next < 0 ? nullptr : t.x[1] + (next * kv_heads + kv) * key_head;
        page.from = same.from, page.to = same.to;
        read_page(base, r * heads, (end - r) * heads);
      }
  }

  void read_page(int32_t base, int first, int n) {
    for (int i = 0; i < n;) {
      const int size = size_for(n - i);
      page.first = i == 0;
      kernels.scores[size](page, q + first + i, rows * heads, score + i);
      i += 1 << size;
    }
    weights_of_page(page, base, of, first, n, score);
    for (int i = 0; i < n;) {
      const int size = size_for(n - i);
      page.first = i == 0;
      kernels.weigh[size](page, score + i, of.fade + first + i, sum + (first + i) * 16 * vectors(), n - i);
      i += 1 << size;
    }
  }

  void finish() const {
    auto* y = reinterpret_cast<float*>(t.y);
    for (int i = 0; i < rows * heads; i++)
      for (int32_t v = 0; v < vectors(); v++)
        store_part(y + ((row + i / heads) * t.in[0]->dim[1] + head + i % heads) * page.vd + 16 * v,
                   div(load(sum + (i * vectors() + v) * 16), splat(of.total[i])),
                   page.vd - 16 * v < 16 ? page.vd - 16 * v : 16);
  }
};

[[gnu::noinline]] inline void attend(const CpuTask& t, int64_t begin, int64_t end,
                                     const PageKernels& kernels) {
  Block b(t, kernels);
  const int64_t group = t.in[0]->dim[1] / b.kv_heads;
  for (int64_t rows; begin < end; begin += rows) {
    const int64_t row = begin % t.rows;
    rows = end - begin < t.rows - row ? end - begin : t.rows - row;
    b.kv = begin / t.rows;
    for (int64_t h = 0; h < group; h += b.heads) {
      b.head = b.kv * group + h;
      b.heads = int(group - h < b.most() ? group - h : b.most());
      for (int64_t r = 0; r < rows; r += b.rows) {
        const int64_t together = b.most() / b.heads;
        b.row = row + r, b.rows = int(rows - r < together ? rows - r : together);
        b.begin(), b.attend(), b.finish();
      }
    }
  }
}
template <class R>
void attention(const CpuTask& t, int64_t begin, int64_t end) {
  attend(t, begin, end, page_kernels<R>());
}
