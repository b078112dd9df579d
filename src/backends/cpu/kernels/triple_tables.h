// The same of three activations: TL2 of bitnet.cpp. Of two opposite triples of weights one has a table entry,
// so a triple is a sign and an index of four bits: s = w0 + 3 w1 + 9 w2, with entry |s|. Here the weights
// stay in the pair plane, two bits each, and s is formed in registers; TL2's five bits for three weights
// would be a layout of its own. Three vectors of codes hold four triples: the three lower pairs of each
// vector, and the upper pairs of all three.
#pragma once

#include "backends/cpu/kernels/pair_tables.h"

constexpr int kVectorsOfTriples = 3;
// 96 columns are six vectors. The other columns of a chunk are pairs; the sums of all fit 16 bits.
constexpr int32_t kColumnsOfTriples = 96;
constexpr int32_t triple_columns(int32_t columns) { return columns / kColumnsOfTriples * kColumnsOfTriples; }

// The column of the first weight in byte 0 of a vector of codes, counted from the first column of the group.
constexpr int32_t column_of_vector(int v) { return 32 * (v / 2) + 4 * (v % 2); }

inline I triple_entries(int8_t a, int8_t b, int8_t c) {
  // The weights of s = 0 to 13.
  constexpr int8_t k0[16] = {0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1},
                   k1[16] = {0, 0, 1, 1, 1, -1, -1, -1, 0, 0, 0, 1, 1, 1},
                   k2[16] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const I two = dot_pairs(splat(int32_t(0)), pairs(load_i8(k0), load_i8(k1)), two_activations(a, b));
  return dot_pairs(two, pairs(load_i8(k2), splat(int32_t(0))), two_activations(c, 0));
}

// Of columns 0 to `to` - 1 of the chunk at x, a multiple of 96. Returns the end of the tables.
inline uint8_t* make_triple_tables(const uint8_t* x, int32_t to, uint8_t* tables) {
  for (int32_t k = 0; k < to; k += kColumnsOfTriples)
    for (int first = 0; first < 6; first += kVectorsOfTriples) {
      for (int v = first; v < first + 3; v++, tables += kBytesOfTables)
        for (int j = 0; j < 4; j++) {
          const int32_t at = k + column_of_vector(v) + j;
          store_table(
              tables, j,
              triple_entries(activation_at(x, at), activation_at(x, at + 8), activation_at(x, at + 16)));
        }
      for (int j = 0; j < 4; j++) {
        int8_t a[3];
        for (int i = 0; i < 3; i++) a[i] = activation_at(x, k + column_of_vector(first + i) + 24 + j);
        store_table(tables, j, triple_entries(a[0], a[1], a[2]));
      }
      tables += kBytesOfTables;
    }
  return tables;
}

// s of two codes and of the third. The code 3 has no s. No file brings it here (files/gguf_reader.h); it
// counts as the weight 0, with its neighbour if it is one of the two, so that s stays in the table.
inline Codes triple_of(Codes two, Codes third) {
  constexpr uint8_t kTwo[16] = {uint8_t(-4), uint8_t(-3), uint8_t(-2), 0, uint8_t(-1), 0, 1, 0, 2, 3, 4},
                    kThird[16] = {uint8_t(-9), 0, 9};
  return sum_of_codes(lookup(two, kTwo), lookup(third, kThird));
}

template <int T>
inline void look_up_triples(const uint8_t* const (&codes)[T], int vectors, const uint8_t* tables,
                            int64_t next, TableSums (&sums)[T]) {
  for (int v = 0; v < vectors; v += kVectorsOfTriples, tables += 4 * kBytesOfTables)
    for (int i = 0; i < T; i++) {
      Codes c[3];
      for (int k = 0; k < 3; k++) {
        __builtin_prefetch(codes[i] + 64 * (v + k) + next, 0, 2);
        c[k] = load_columns(codes[i] + 64 * (v + k));
        add_signed_entries(sums[i], load_tables(tables + k * kBytesOfTables),
                           triple_of(field<0, 0, 4>(c[k]), field<4, 0, 2>(c[k])));
      }
      add_signed_entries(sums[i], load_tables(tables + 3 * kBytesOfTables),
                         triple_of(either(field<6, 0, 2>(c[0]), field<6, 2, 2>(c[1])), field<6, 0, 2>(c[2])));
    }
}
