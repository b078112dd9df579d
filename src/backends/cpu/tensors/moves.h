// Kernels that move elements: cast, assign, select, gather, scatter, check_ids. Elements of one size are
// moved as words.
#pragma once

#include "backends/cpu/tensors/view.h"

template <class F>
inline void with_word(int size, F f) {
  if (size == 1) f(static_cast<uint8_t*>(nullptr));
  else if (size == 2) f(static_cast<uint16_t*>(nullptr));
  else if (size == 4) f(static_cast<uint32_t*>(nullptr));
  else f(static_cast<uint64_t*>(nullptr));
}

// n elements of a view, as they are.
template <class Word>
inline void copy_out(const View& v, int64_t element, int64_t n, Word* to) {
  for_runs(v, element, n, [&](const unsigned char* p, int64_t stride, int64_t part) {
    const auto* from = reinterpret_cast<const Word*>(p);
    if (stride == 1) __builtin_memcpy(to, from, size_t(part) * sizeof(Word));
    else
      for (int64_t i = 0; i < part; i++) to[i] = from[i * stride];
    to += part;
  });
}

// ---- copies of a view whose second dim is the dense one, such as a transposed matrix. Its rows are copied
// in tiles of whole cache lines: a row alone would read one element of each line.
template <class Word>
constexpr int64_t kTileSide = 64 / int64_t(sizeof(Word));

inline bool is_turned(const View& v) {
  const int64_t side = 64 / v.size;
  return v.rank >= 2 && v.stride[0] != 1 && v.stride[1] == 1 && v.dim[0] >= side && v.dim[1] >= side;
}

// kTileSide rows of n elements: row r of the result takes from[r + i * stride] for each i.
template <class Word>
inline void copy_turned_rows(const Word* from, int64_t stride, int64_t n, Word* to) {
  constexpr int64_t kSide = kTileSide<Word>;
  alignas(64) Word tile[kSide][kSide];
  for (int64_t i = 0; i < n; i += kSide) {
    const int64_t columns = n - i < kSide ? n - i : kSide;
    for (int64_t c = 0; c < columns; c++) __builtin_memcpy(tile[c], from + (i + c) * stride, sizeof tile[c]);
    for (int64_t r = 0; r < kSide; r++)
      for (int64_t c = 0; c < columns; c++) to[r * n + i + c] = tile[c][r];
  }
}

// Elements [first, last) of a turned view; `to`: where element 0 goes.
template <class Word>
inline void copy_turned(const View& v, int64_t first, int64_t last, Word* to) {
  const int64_t n = v.dim[0];
  for (int64_t e = first; e < last;) {
    const int64_t left = n - e % n, row = e / n % v.dim[1];
    if (left == n && last - e >= kTileSide<Word> * n && v.dim[1] - row >= kTileSide<Word>) {
      copy_turned_rows(reinterpret_cast<const Word*>(v.base) + offset_of(v, e), v.stride[0], n, to + e);
      e += kTileSide<Word> * n;
    } else {
      const int64_t part = last - e < left ? last - e : left;
      copy_out(v, e, part, to + e);
      e += part;
    }
  }
}

// ---- cast: each source is read in a type that holds it exactly, and rounded once
template <class T>
struct Exact {
  using Type = int64_t;
};
template <>
struct Exact<float> {
  using Type = float;
};
template <>
struct Exact<Half> : Exact<float> {};
template <>
struct Exact<Brain> : Exact<float> {};
template <>
struct Exact<Small43> : Exact<float> {};
template <>
struct Exact<Small52> : Exact<float> {};
template <>
struct Exact<double> {
  using Type = double;
};
template <>
struct Exact<uint64_t> {
  using Type = uint64_t;
};

// Formats in blocks, by their definition.
inline void cast_blocks(const CpuTask& t, int64_t begin, int64_t end) {
  const DType from = DType(t.in[0]->dtype);
  const int64_t block = block_of(from).values, bytes = block_of(from).bytes;
  const View out = output_view(t);
  alignas(64) float values[kBlock];
  static_assert(kBlock % 256 == 0);
  for_blocks(t, begin, end, [&](int64_t e, int64_t n) {  // blocks of 32 to 256 begin where blocks of 1024 do
    gimbal::decode(from, t.x[0] + e / block * bytes, n, values);
    with_type(out.type, [&]<class T>(T*) { cast_run<float>(values, 1, n, reinterpret_cast<T*>(out.at(e))); });
  });
}

inline void cast(const CpuTask& t, int64_t begin, int64_t end) {
  if (block_of(DType(t.in[0]->dtype)).values > 1) return cast_blocks(t, begin, end);
  const View x = input_view(t, 0), out = output_view(t);
  if (x.type == out.type && is_turned(x)) {
    const int64_t n = count_of(*t.out), last = end * kGrain < n ? end * kGrain : n;
    return with_word(
        x.size, [&]<class W>(W*) { copy_turned(x, begin * kGrain, last, reinterpret_cast<W*>(out.base)); });
  }
  for_blocks(t, begin, end, [&](int64_t e, int64_t n) {
    if (x.type == out.type)
      return with_word(x.size, [&]<class W>(W*) { copy_out(x, e, n, reinterpret_cast<W*>(out.at(e))); });
    with_type(x.type, [&]<class S>(S*) {
      with_type(out.type, [&]<class T>(T*) {
        auto* to = reinterpret_cast<T*>(out.at(e));
        for_runs(x, e, n, [&](const unsigned char* p, int64_t stride, int64_t part) {
          cast_run<typename Exact<S>::Type>(reinterpret_cast<const S*>(p), stride, part, to);
          to += part;
        });
      });
    });
  });
}

// ---- assign: to a view of any strides
inline void assign(const CpuTask& t, int64_t begin, int64_t end) {
  const View x = input_view(t, 1), out = output_view(t);
  with_word(x.size, [&]<class W>(W*) {
    alignas(64) W room[kBlock];
    for_blocks(t, begin, end, [&](int64_t e, int64_t n) {
      copy_out(x, e, n, room);
      const W* from = room;
      for_runs(out, e, n, [&](unsigned char* p, int64_t stride, int64_t part) {
        auto* to = reinterpret_cast<W*>(p);
        for (int64_t i = 0; i < part; i++) to[i * stride] = from[i];
        from += part;
      });
    });
  });
}

inline void select(const CpuTask& t, int64_t begin, int64_t end) {
  const View condition = input_view(t, 0), a = input_view(t, 1), b = input_view(t, 2), out = output_view(t);
  with_word(out.size, [&]<class W>(W*) {
    alignas(64) W first[kBlock], second[kBlock];
    uint8_t holds[kBlock];
    for_blocks(t, begin, end, [&](int64_t e, int64_t n) {
      copy_out(condition, e, n, holds), copy_out(a, e, n, first), copy_out(b, e, n, second);
      auto* y = reinterpret_cast<W*>(out.at(e));
      for (int64_t i = 0; i < n; i++) y[i] = holds[i] ? first[i] : second[i];
    });
  });
}

// ---- gather and scatter. Ids that are out of range are skipped: check_ids finds them.
inline int64_t id_at(const gimbal_value& v, const unsigned char* memory, int64_t at) {
  int64_t id = 0;
  with_type_of<int64_t>(DType(v.dtype),
                        [&]<class T>(T*) { id = value_of<int64_t>(reinterpret_cast<const T*>(memory)[at]); });
  return id;
}

// Walks the elements [first, first + n) of `over`'s dims: calls each(place of the element in memory a, in b,
// in c, number), where the strides of dim `along` are 0 in a: the caller adds the id's.
struct Walk {
  int rank;
  int64_t dim[GIMBAL_MAX_RANK], a[GIMBAL_MAX_RANK], b[GIMBAL_MAX_RANK], c[GIMBAL_MAX_RANK];
};
template <class Each>
inline void walk(const Walk& w, int64_t first, int64_t n, Each each) {
  int64_t place[GIMBAL_MAX_RANK] = {}, a = 0, b = 0, c = 0;
  for (int i = 0; i < w.rank; i++) {
    place[i] = first % w.dim[i], first /= w.dim[i];
    a += place[i] * w.a[i], b += place[i] * w.b[i], c += place[i] * w.c[i];
  }
  for (int64_t k = 0; k < n; k++) {
    each(a, b, c);
    for (int i = 0; i < w.rank; i++) {
      a += w.a[i], b += w.b[i], c += w.c[i];
      if (++place[i] < w.dim[i]) break;
      a -= w.dim[i] * w.a[i], b -= w.dim[i] * w.b[i], c -= w.dim[i] * w.c[i], place[i] = 0;
    }
  }
}

inline void gather(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &x = *t.in[0], &ids = *t.in[1];
  const int along = int(t.op->param.i[0]);
  const View out = output_view(t);
  Walk w{t.out->rank, {}, {}, {}, {}};
  for (int i = 0; i < w.rank; i++)
    w.dim[i] = ids.dim[i], w.a[i] = i == along ? 0 : x.stride[i], w.b[i] = ids.stride[i];
  // One id for a whole row of neighbours: a copy.
  const bool rows = along > 0 && ids.stride[0] == 0 && x.stride[0] == 1;
  Walk row = w;
  row.rank--;
  for (int i = 0; i < row.rank; i++) row.dim[i] = w.dim[i + 1], row.a[i] = w.a[i + 1], row.b[i] = w.b[i + 1];
  const int64_t below = x.dim[along], step = x.stride[along];
  with_word(out.size, [&]<class W>(W*) {
    const auto* from = reinterpret_cast<const W*>(t.x[0]);
    with_type_of<int64_t>(DType(ids.dtype), [&]<class T>(T*) {
      const auto* numbers = reinterpret_cast<const T*>(t.x[1]);
      for_blocks(t, begin, end, [&](int64_t e, int64_t n) {
        auto* y = reinterpret_cast<W*>(out.at(e));
        for (int64_t done = 0; done < n;) {
          const int64_t at = (e + done) % w.dim[0], left = w.dim[0] - at,
                        part = n - done < left ? n - done : left;
          walk(row, (e + done) / w.dim[0], 1, [&](int64_t a, int64_t b, int64_t) {
            if (rows) {
              const auto id = value_of<int64_t>(numbers[b]);
              if (id >= 0 && id < below)
                __builtin_memcpy(y + done, from + a + id * step + at, size_t(part) * sizeof(W));
              return;
            }
            for (int64_t i = at; i < at + part; i++) {
              const auto id = value_of<int64_t>(numbers[b + i * ids.stride[0]]);
              y[done + i - at] = id >= 0 && id < below ? from[a + i * w.a[0] + id * step] : W(0);
            }
          });
          done += part;
        }
      });
    });
  });
}

// A work item is a line along the dim that ids choose: the order within it is that of the places.
inline CpuWork lines_of_ids(const CpuTask& t) {
  const int64_t n = count_of(*t.in[1]), along = t.in[1]->dim[t.op->param.i[0]];
  return {n / along, 4.0 * double(n)};
}
inline void scatter(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &ids = *t.in[1], &x = *t.in[2], &to = *t.out;
  const int along = int(t.op->param.i[0]);
  const bool adds = t.op->param.i[1] != 0;
  Walk w{0, {}, {}, {}, {}};
  for (int i = 0; i < ids.rank; i++) {
    if (i == along) continue;
    w.dim[w.rank] = ids.dim[i], w.a[w.rank] = to.stride[i], w.b[w.rank] = ids.stride[i],
    w.c[w.rank] = x.stride[i];
    w.rank++;
  }
  with_type(DType(to.dtype), [&]<class T>(T*) {
    auto* y = reinterpret_cast<T*>(t.y);
    const auto* from = reinterpret_cast<const T*>(t.x[2]);
    walk(w, begin, end - begin, [&](int64_t a, int64_t b, int64_t c) {
      for (int64_t i = 0; i < ids.dim[along]; i++) {
        const int64_t id = id_at(ids, t.x[1], b + i * ids.stride[along]);
        if (id < 0 || id >= to.dim[along]) continue;
        T& place = y[a + id * to.stride[along]];
        const T v = from[c + i * x.stride[along]];
        if (!adds) {
          place = v;
        } else if constexpr (__is_same(T, double)) {
          place = place + v;
        } else if constexpr (__is_same(typename Exact<T>::Type, float)) {
          place = stored<T>(value_of<float>(place) + value_of<float>(v));
        } else {
          place = stored<T>(int64_t(uint64_t(value_of<int64_t>(place)) + uint64_t(value_of<int64_t>(v))));
        }
      }
    });
  });
}

// ---- encode: rows of f32 to blocks
inline CpuWork rows_to_encode(const CpuTask& t) {
  const int64_t n = count_of(*t.out);
  return {n / t.out->dim[0], 200.0 * double(n)};
}
inline void encode_rows(const CpuTask& t, int64_t begin, int64_t end) {
  const DType type = DType(t.out->dtype);
  const int64_t n = t.out->dim[0], bytes = n / block_of(type).values * block_of(type).bytes;
  const auto* x = reinterpret_cast<const float*>(t.x[0]);
  const auto* importance = t.op->inputs > 1 ? reinterpret_cast<const float*>(t.x[1]) : nullptr;
  for (int64_t row = begin; row < end; row++)
    gimbal::encode(type, x + row * n, n, t.y + row * bytes, importance);
}

inline CpuWork one_item(const CpuTask& t) { return {1, double(count_of(*t.in[0]))}; }
inline void check_ids(const CpuTask& t, int64_t, int64_t) {
  const View ids = input_view(t, 0);
  const int64_t below = t.op->param.i[0], n = count_of(*t.in[0]);
  int64_t found[3] = {0, 0, 0};
  alignas(64) int64_t room[kBlock];
  for (int64_t e = 0; e < n; e += kBlock) {
    const int64_t part = n - e < kBlock ? n - e : kBlock;
    const int64_t* id = operand(ids, e, part, room);
    for (int64_t i = 0; i < part; i++)
      if (id[i] < 0 || id[i] >= below)
        if (found[0]++ == 0) found[1] = e + i, found[2] = id[i];
  }
  __builtin_memcpy(t.y, found, sizeof found);
}
