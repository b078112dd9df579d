// The weight layouts of microsoft/BitNet's files: rows of -1, 0, 1 with one scale per matrix, in byte orders
// made for certain kernels. TL1 and TL2 are cut into tiles whose sizes are not in the file, and i2_s has
// three orders under one type id; the bytes do not show which one. So the sizes are built in (the set-up
// program's sizes for published shapes) or given by the user; otherwise the file is refused.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

enum class Ternary : uint8_t {
  None,      // no such matrix, or i2_s in blocks of 128 values: rows lie one after the other
  FourRows,  // i2_s: a byte has one column of four rows
  TL1,       // two weights in four bits
  TL2,       // three weights in four bits and a sign; the remaining columns as in TL1
};

// The tiles of one matrix. kernel_config.ini calls tile_rows, tile_columns and group bm, bk and bmm.
struct TernaryTiles {
  int64_t rows = 0, columns = 0;                   // of the matrix
  int tile_rows = 0, tile_columns = 0, group = 0;  // 0: not known
};

// The user's choice of layouts.
struct TernaryChoice {
  std::vector<TernaryTiles> tiles;  // from a kernel_config.ini
  bool preset =
      false;  // where two layouts are documented: that of the preset files; else of the set-up program
  bool decided = false;  // the user chose `preset`, true or false
  int i2_s = 128;        // 128 or 64 values to a block, or 4: rows to a byte
};
// "default", "preset", "i2_s-128", "i2_s-64", "i2_s-4x1", or the path of a kernel_config.ini. Errors: Usage;
// those of read_file.
Result<TernaryChoice> ternary_choice(const std::string& text);
// Errors: Malformed, with the line.
Result<std::vector<TernaryTiles>> parse_kernel_config(std::string_view text, const std::string& name);

// The tiles of a matrix in TL1 or TL2. Errors: Unsupported for unknown sizes, or for two known ones without a
// choice; Malformed for tiles that do not divide the matrix.
Result<TernaryTiles> ternary_tiles(Ternary, int64_t rows, int64_t columns, const TernaryChoice&);

// Bytes of the codes of a whole matrix. They are followed, at the next multiple of 32, by the f32 scale and
// 28 more bytes.
uint64_t ternary_bytes(Ternary, int64_t rows, int64_t columns);
// With the scale and all padding.
uint64_t ternary_region(Ternary, int64_t rows, int64_t columns);

// The codes 0, 1, 2 (for -1, 0, 1) of rows `begin` to `end`, one per byte. `read(source, offset, to, bytes)`
// reads the matrix's bytes. Errors: those of `read`; Malformed for invalid codes, which wrong tiles may give.
using ReadCodes = Status (*)(const void* source, uint64_t offset, void* to, size_t bytes);
Status read_ternary_rows(Ternary, const TernaryTiles&, ReadCodes, const void* source, int64_t begin,
                         int64_t end, uint8_t* codes);

// The first of these bytes of i2_s, four codes each, that has the code 3, which is no weight; `bytes` where
// there is none.
size_t find_code_3(const void* codes, size_t bytes);

}  // namespace gimbal
