// Tables of the sums of two activations with all pairs of ternary weights, and their look-up: TL1 of
// bitnet.cpp (Wang et al., "Bitnet.cpp: Efficient Edge Inference for Ternary LLMs", 2025). A pair of weights
// is an index of four bits. The pair plane of 32 columns (packing/layout.h) already holds such indices: byte
// k of a row has the codes of columns k and k + 8 in its low nibble, and of k + 16 and k + 24 in its high
// one. Nine of the 16 entries belong to pairs of -1, 0, 1. The others give the code 3, which does not
// occur, the weight 2, as row_sums.h does. So both have the same integer sums for all bytes.
#pragma once

#include "backends/cpu/kernels/codes.h"
#include "backends/cpu/kernels/memory.h"

// Bytes of the tables of four neighbouring columns: all low bytes, then all high bytes.
constexpr int kBytesOfTables = 128;

// Pairs of 256 columns fit 16 bits: an element of TableSums adds at most 64 of them
// (variants/<name>/tables.h).
constexpr int kPairsOfSum = 64, kLargestWeight = 2;  // of code 3
static_assert(kPairsOfSum * 2 * kLargestWeight * 127 <= INT16_MAX &&
              kPairsOfSum * 2 * kLargestWeight * -128 >= INT16_MIN);

// Column k of a row of a8_row that begins at x.
inline int8_t activation_at(const uint8_t* x, int32_t k) {
  constexpr gimbal::Activations layout = gimbal::activations_of(DType::A8_ROW);
  return read<int8_t>(x + k / layout.block * layout.bytes + layout.codes + k % layout.block);
}
inline I two_activations(int8_t first, int8_t second) {
  return splat(int32_t(uint16_t(first) | uint32_t(uint16_t(second)) << 16));
}

// Of columns `from` to `to` - 1, both multiples of 32; entry i is the sum of both activations times weights
// i % 4 - 1 and i / 4 - 1. Returns the end of the tables.
inline uint8_t* make_pair_tables(const uint8_t* x, int32_t from, int32_t to, uint8_t* tables) {
  constexpr int8_t kFirst[16] = {-1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2},
                   kSecond[16] = {-1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  const I weights = pairs(load_i8(kFirst), load_i8(kSecond));
  for (int32_t k = from; k < to; k += 32)
    for (int vector = 0; vector < 2; vector++)
      for (int high = 0; high < 2; high++, tables += kBytesOfTables)
        for (int j = 0; j < 4; j++) {
          const int32_t at = k + 16 * high + 4 * vector + j;
          store_table(tables, j,
                      dot_pairs(splat(int32_t(0)), weights,
                                two_activations(activation_at(x, at), activation_at(x, at + 8))));
        }
  return tables;
}

// Adds the sums of `vectors` vectors of codes of each tile.
template <int T>
inline void look_up_pairs(const uint8_t* const (&codes)[T], int vectors, const uint8_t* tables, int64_t next,
                          TableSums (&sums)[T]) {
  for (int v = 0; v < vectors; v++, tables += 2 * kBytesOfTables) {
    const Tables low = load_tables(tables), high = load_tables(tables + kBytesOfTables);
    for (int i = 0; i < T; i++) {
      __builtin_prefetch(codes[i] + 64 * v + next, 0, 2);
      const Codes c = load_columns(codes[i] + 64 * v);
      add_entries(sums[i], low, field<0, 0, 4>(c));
      add_entries(sums[i], high, field<4, 0, 4>(c));
    }
  }
}
