#include "ops/cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/bytes.h"
#include "base/format.h"
#include "ops/shapes.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

// A small generator of our own: the same cases on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_;
  }
  // Roughly normal: the sum of four uniform numbers.
  float normal() {
    float s = 0;
    for (int i = 0; i < 4; i++) s += float(next() >> 40) / float(1 << 24) - 0.5f;
    return s * 1.7f;
  }
  int below(int n) { return int(next() >> 33) % n; }

 private:
  uint64_t state_;
};

CaseInput floats(Shape s, Numbers& n, float scale = 1) {
  std::vector<float> x(static_cast<size_t>(s.count()));
  for (float& v : x) v = n.normal() * scale;
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes())), false};
  encode(s.type, x.data(), s.count(), in.dense.data());
  return in;
}

CaseInput integers(Shape s, const std::vector<int32_t>& v) {
  CaseInput in{s, std::vector<std::byte>(v.size() * 4), false};
  std::memcpy(in.dense.data(), v.data(), in.dense.size());
  return in;
}

// Activations as ops/quantize lays them out; codes over the whole range.
CaseInput activations(Shape s, Numbers& n) {
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes())), false};
  const int block = info(s.type).block, size = info(s.type).bytes;
  for (int64_t b = 0; b < s.count() / block; b++) {
    std::byte* p = in.dense.data() + b * size;
    const float scale = std::fabs(n.normal()) * 0.01f + 1e-4f;
    std::memcpy(p, &scale, 4);
    int8_t codes[256];
    for (int i = 0; i < block; i++) codes[i] = int8_t(n.below(255) - 127);
    if (s.type == DType::A8_32) {
      int32_t sum = 0;
      for (int i = 0; i < 32; i++) sum += codes[i];
      std::memcpy(p + 4, &sum, 4);
      std::memcpy(p + 8, codes, 32);
    } else {
      std::memcpy(p + 4, codes, 256);
      for (int g = 0; g < 16; g++) {
        int16_t sum = 0;
        for (int i = 0; i < 16; i++) sum = int16_t(sum + codes[16 * g + i]);
        std::memcpy(p + 260 + 2 * g, &sum, 2);
      }
    }
  }
  return in;
}

CaseInput weight(Shape s, Numbers& n) {
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes() + tensor_tail_bytes(s.type))), true};
  if (can_encode(s.type)) in = floats(s, n, 0.1f);
  else random_blocks(s.type, s.count(), in.dense.data(), [&] { return n.next(); });
  if (tensor_tail_bytes(s.type)) {
    const float scale = 0.5f + std::fabs(n.normal());
    std::memcpy(in.dense.data() + s.bytes(), &scale, 4);
  }
  in.weight = true;
  return in;
}

std::string label(OpKind kind, DType t, const char* text) {
  return format("{} {} {}", info(kind).name, info(t).name, text);
}

void mat_mul_cases(DType w, std::vector<Case>& out) {
  struct Size {
    int blocks, tail, n, rows, bias;  // k = blocks * block + tail
    int spare = 2;                    // rows that there is room for beyond those to compute
  };
  // One block and many; a whole chunk of 256, one more, one less; a tile of 16 outputs, one more, one less;
  // rows of x around the numbers that kernels take at once; few rows where there is room for many; and for
  // one alone.
  static constexpr Size kSizes[] = {{1, 0, 1, 1, 0},      {2, 0, 16, 1, 1},     {3, 5, 17, 2, 0},
                                    {8, 0, 15, 3, 0},     {9, 1, 33, 4, 1},     {16, 0, 48, 5, 0},
                                    {17, 3, 7, 8, 0},     {43, 31, 64, 9, 1},   {64, 0, 256, 1, 0},
                                    {5, 0, 130, 31, 0},   {9, 0, 33, 16, 1},    {3, 0, 17, 33, 0},
                                    {8, 0, 20, 3, 1, 30}, {1, 0, 5, 260, 0},    {3, 5, 17, 1, 0, 0},
                                    {9, 1, 33, 1, 1, 0},  {43, 31, 64, 1, 0, 0}};
  Numbers n(uint64_t(w) + 11);
  for (const Size& s : kSizes) {
    const DType x = activation_type(w);
    const int block = std::max(info(w).block, info(x).block),
              columns = block > 1 ? block * s.blocks : 32 * s.blocks + s.tail;
    if (int64_t(columns) * s.n > 1 << 19) continue;
    Case c{label(OpKind::MatMul, w,
                 format("k={} n={} rows={}{}", columns, s.n, s.rows, s.bias ? " bias" : "").c_str()),
           OpKind::MatMul,
           {},
           {},
           s.rows,
           s.rows + s.spare};
    c.inputs.push_back(weight(Shape(w, {columns, s.n}), n));
    c.inputs.push_back(x == DType::F32 ? floats(Shape(x, {columns, c.capacity}), n)
                                       : activations(Shape(x, {columns, c.capacity}), n));
    if (s.bias) c.inputs.push_back(floats(Shape(DType::F32, {s.n}), n));
    out.push_back(std::move(c));
  }
}

// Keys and values are written through the device's own cache_write before attention reads them.
void cache_cases(OpKind kind, DType cache, std::vector<Case>& out) {
  struct Size {
    int hd, heads, kv_heads, positions, rows, window, sequences;
  };
  static constexpr Size kSizes[] = {
      {8, 2, 1, 1, 1, 0, 1},     {32, 1, 1, 1, 1, 0, 1},    {16, 4, 4, 17, 1, 0, 1},
      {32, 4, 2, 63, 3, 0, 1},   {64, 2, 1, 64, 5, 0, 1},   {80, 3, 3, 65, 2, 0, 1},
      {128, 2, 2, 130, 4, 0, 1}, {20, 2, 1, 200, 7, 50, 1}, {64, 4, 1, 129, 2, 64, 1},
      {32, 7, 1, 150, 3, 17, 2}, {96, 6, 2, 77, 5, 0, 3}};
  Numbers n(uint64_t(cache) + 77);
  for (const Size& s : kSizes) {
    if (s.hd % info(cache).block) continue;
    const int pages = (s.positions + kPagePositions - 1) / kPagePositions + 1;
    Case c{label(kind, cache,
                 format("hd={} heads={}/{} positions={} rows={} window={} sequences={}", s.hd, s.heads,
                        s.kv_heads, s.positions, s.rows, s.window, s.sequences)
                     .c_str()),
           kind,
           {},
           {},
           s.rows,
           s.rows};
    c.params.f[0] = 1.f / std::sqrt(float(s.hd));
    c.params.i[1] = s.window;
    c.inputs.push_back(floats(Shape(DType::F32, {s.hd, s.heads, s.rows}), n));
    for (int kv = 0; kv < 2; kv++) {
      CaseInput in = floats(Shape(DType::F32, {s.hd, s.kv_heads, s.positions * s.sequences}), n);
      // Heads of zeros, of numbers that a half rounds to zero, and of some that it holds in a few bits only.
      const float odd[] = {0, 1e-7f, 3e-6f};
      for (size_t i = 0; i < std::size(odd) && int(i) + 1 < s.positions; i++)
        for (size_t d = 0; d < size_t(s.hd); d++) {
          std::byte* at = &in.dense[(i * size_t(s.kv_heads * s.hd) + d) * 4];
          const float v = read_le<float>(at) * odd[i];
          std::memcpy(at, &v, 4);
        }
      c.inputs.push_back(std::move(in));
    }
    std::vector<int32_t> position, sequence, table(size_t(pages), 0);  // sequence 0 is nobody's
    for (int r = 0; r < s.rows; r++)
      position.push_back(std::max(0, s.positions - 1 - 3 * r)), sequence.push_back(1 + r % s.sequences);
    for (int q = 0; q < s.sequences; q++)  // pages out of order and between each other
      for (int i = 0; i < pages; i++) table.push_back((i + 1) % pages * s.sequences + q);
    c.inputs.push_back(integers(Shape(DType::I32, {s.rows}), position));
    c.inputs.push_back(integers(Shape(DType::I32, {s.rows}), sequence));
    c.inputs.push_back(integers(Shape(DType::I32, {pages, 1 + s.sequences}), table));
    out.push_back(std::move(c));
  }
}

void row_cases(OpKind kind, DType in0, std::vector<Case>& out) {
  Numbers n(uint64_t(kind) * 131 + uint64_t(in0));
  for (int width : {1, 8, 15, 16, 17, 64, 172, 256, 1000, 2048})
    for (int rows : {1, 3}) {
      const int capacity = rows + 1;
      Case c{label(kind, in0, format("width={} rows={}", width, rows).c_str()), kind, {}, {}, rows, capacity};
      auto add = [&](CaseInput in) { c.inputs.push_back(std::move(in)); };
      auto x = [&](float scale = 1) { return floats(Shape(DType::F32, {width, capacity}), n, scale); };
      switch (kind) {
        case OpKind::Embed: {
          if (width % info(in0).block) continue;
          std::vector<int32_t> tokens;
          for (int r = 0; r < capacity; r++) tokens.push_back((r * 17 + 20) % 37);
          add(weight(Shape(in0, {width, 37}), n));
          add(integers(Shape(DType::I32, {capacity}), tokens));
          break;
        }
        case OpKind::RmsNorm:
          c.params.f[0] = 1e-5f;
          add(x(rows == 1 ? 1e-3f : 30.f));
          add(floats(Shape(DType::F32, {width}), n));
          break;
        case OpKind::Scale:
          c.params.f[0] = 0.0371f;
          add(x());
          break;
        case OpKind::SquaredReluGlu:
        case OpKind::SwiGlu: add(x(4)), add(x()); break;
        case OpKind::Add: add(x()), add(x()); break;
        case OpKind::SelectRows: {
          std::vector<int32_t> which;
          for (int r = 0; r < capacity; r++) which.push_back(capacity - 1 - r);
          add(x());
          add(integers(Shape(DType::I32, {capacity}), which));
          break;
        }
        case OpKind::Rope: {
          if (width % 2 || width > 256) continue;
          for (RopePairs pairs : {RopePairs::Adjacent, RopePairs::Halves})
            for (int rotated : {width, width / 4 * 2}) {
              if (!rotated) continue;
              Case r{c.name + (pairs == RopePairs::Adjacent ? " adjacent" : " halves") +
                         format(" rotated={}", rotated),
                     kind,
                     {},
                     {},
                     rows,
                     capacity};
              r.params.i[0] = int32_t(pairs);
              r.inputs.push_back(floats(Shape(DType::F32, {width, 3, capacity}), n));
              CaseInput table = floats(Shape(DType::F32, {rotated, capacity}), n);
              r.inputs.push_back(std::move(table));
              out.push_back(std::move(r));
            }
          continue;
        }
        case OpKind::Quantize:
          for (DType t : {DType::A8_32, DType::A8_256}) {
            if (width % info(t).block) continue;
            Case q{c.name + " to " + info(t).name, kind, {}, {}, rows, capacity};
            q.params.i[0] = int32_t(t);
            q.inputs.push_back(x());
            // A block of zeros, and one of values too small to count, must give zeros.
            std::memset(q.inputs[0].dense.data(), 0, size_t(info(t).block) * 4);
            out.push_back(std::move(q));
          }
          continue;
        default: continue;
      }
      out.push_back(std::move(c));
    }
}

// Rows of the widths around those that kernels sort at once, and of a large vocabulary. Values that are
// equal, zeros of both signs, infinities and numbers that are none must come in the one order that there is.
void sort_cases(OpKind kind, std::vector<Case>& out) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kOdd[] = {0.f,    -0.f,   kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                            1e-42f, -1e-42f};
  struct Size {
    int width, rows, k;  // k: of TopK
  };
  static constexpr Size kSizes[] = {{1, 1, 1},      {2, 3, 1},     {5, 2, 7},      {63, 1, 40},
                                    {64, 2, 64},    {65, 1, 1},    {130, 3, 200},  {511, 1, 40},
                                    {512, 2, 1},    {513, 1, 513}, {1000, 3, 40},  {4097, 1, 64},
                                    {5000, 1, 300}, {33000, 1, 1}, {262144, 1, 40}};
  Numbers n(uint64_t(kind) * 131 + 5);
  for (const Size& s : kSizes) {
    // Wide rows once each: checked lane by lane they take seconds.
    const bool wide = s.width > 4000;
    if (kind != OpKind::TopK && s.width > (kind == OpKind::Sort ? 10000 : 40000)) continue;
    for (const char* what : {"normal", "equal", "odd"}) {
      if (wide && what[0] != (s.width == 5000 ? 'o' : 'n')) continue;
      for (int order = 0; order < (kind == OpKind::TopK ? 1 : 2); order++) {
        if (wide && kind != OpKind::TopK && order != (kind == OpKind::ArgSort)) continue;
        Case c{format("{} width={} rows={} {} {}", info(kind).name, s.width, s.rows, what,
                      kind == OpKind::TopK ? format("k={}", s.k)
                      : order              ? "falling"
                                           : "rising"),
               kind,
               {},
               {},
               s.rows,
               s.rows + 1};
        c.params.i[0] = kind == OpKind::TopK ? s.k : order;
        c.inputs.push_back(floats(Shape(DType::F32, {s.width, c.capacity}), n));
        std::byte* at = c.inputs[0].dense.data();
        for (int64_t i = 0; i < c.inputs[0].shape.count() && what[0] != 'n'; i++) {
          // Few different values; every third one of those that no kernel may take for others.
          float v = float(n.below(5) - 2);
          if (what[0] == 'o' && i % 3 == 0) v = kOdd[n.below(int(std::size(kOdd)))];
          std::memcpy(at + 4 * i, &v, 4);
        }
        out.push_back(std::move(c));
      }
    }
  }
}

}  // namespace

std::vector<Case> cases(OpKind kind, DType in0) {
  std::vector<Case> out;
  const bool weights = kind == OpKind::MatMul || kind == OpKind::Embed;
  if (weights ? !can_decode(in0)
              : kind != OpKind::Attention && kind != OpKind::CacheWrite && in0 != DType::F32)
    return out;
  if (kind == OpKind::MatMul) mat_mul_cases(in0, out);
  else if (kind == OpKind::Attention || kind == OpKind::CacheWrite) cache_cases(kind, in0, out);
  else if (kind == OpKind::TopK || kind == OpKind::Sort || kind == OpKind::ArgSort) sort_cases(kind, out);
  else row_cases(kind, in0, out);
  return out;
}

double tolerance(OpKind kind, const std::vector<Shape>& in) {
  constexpr double u = 0x1p-24;
  switch (kind) {
    case OpKind::MatMul: {
      // One rounding per FMA inside a chunk (a block, or a column of float weights), two more per block for
      // its scale, one per chunk.
      const double k = in[0].dim[0], per_chunk = std::min<double>(k, kChunk) /
                                                 (info(in[0].type).block > 1 ? info(in[1].type).block : 1);
      return (per_chunk + 3 + k / kChunk + 2) * u;
    }
    case OpKind::RmsNorm:
      return (in[0].dim[0] / 16.0 / 2 + 10) * u;  // half: a square root halves relative errors
    case OpKind::Attention:
      return u;  // the reference's magnitude counts the roundings: they depend on the scores
    case OpKind::SwiGlu: return 16 * u;
    case OpKind::Rope: return 3 * u;
    case OpKind::SquaredReluGlu: return 2 * u;
    case OpKind::Scale:
    case OpKind::Add: return u;
    case OpKind::Embed: return 2 * u;
    case OpKind::Quantize: return 1 + 8 * u;  // of half a step
    default: return 0;
  }
}

}  // namespace gimbal
