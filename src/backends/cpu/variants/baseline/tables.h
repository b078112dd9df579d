// Tables of sums for products by table look-up (kernels/table_look_up.h), in plain C.
#pragma once

namespace CPU_VARIANT {
namespace {

constexpr int kTilesOfLookUp = 1;  // that share the loads of the tables

// A sum for each of 16 rows. Elements of 16 bits (other sets) add at most 64 entries of 256 columns.
struct TableSums {
  int32_t v[16];
};
// The tables of four pairs of columns, each of 16 i16: in memory the low bytes of all four, then the high
// ones.
struct Tables {
  const uint8_t* bytes;
};
inline Tables load_tables(const uint8_t* p) { return {p}; }
inline void store_table(uint8_t* tables, int j, I entries) {
  for (int i = 0; i < 16; i++) {
    tables[16 * j + i] = uint8_t(entries.v[i]);
    tables[64 + 16 * j + i] = uint8_t(uint32_t(entries.v[i]) >> 8);
  }
}
// A vector of codes, byte 4 r + j of row r, so that the bytes j of all rows are together, in an order of rows
// that widen() undoes.
inline Codes load_columns(const uint8_t* p) {
  Codes c;
  for (int r = 0; r < 16; r++)
    for (int j = 0; j < 4; j++) c.v[16 * j + r] = p[4 * r + j];
  return c;
}
// Adds to the sums of each row the entries that its four bytes name, each below 16.
inline void add_entries(TableSums& sums, const Tables& tables, Codes c) {
  for (int j = 0; j < 4; j++)
    for (int r = 0; r < 16; r++) {
      const uint8_t* entry = tables.bytes + 16 * j + c.v[16 * j + r];
      sums.v[r] += int16_t(entry[0] | entry[64] << 8);
    }
}
// The same of numbers from -13 to 13: the sign is that of the entry.
inline void add_signed_entries(TableSums& sums, const Tables& tables, Codes c) {
  for (int j = 0; j < 4; j++)
    for (int r = 0; r < 16; r++) {
      const int n = int8_t(c.v[16 * j + r]);
      const uint8_t* entry = tables.bytes + 16 * j + ((n < 0 ? -n : n) & 15);
      const int value = int16_t(entry[0] | entry[64] << 8);
      sums.v[r] += n < 0 ? -value : value;
    }
}
inline Codes sum_of_codes(Codes a, Codes b) {
  for (int i = 0; i < 64; i++) a.v[i] = uint8_t(a.v[i] + b.v[i]);
  return a;
}
inline I widen(TableSums sums) {
  I r;
  for (int i = 0; i < 16; i++) r.v[i] = sums.v[i];
  return r;
}

}  // namespace
}  // namespace CPU_VARIANT
