#include "files/ternary_layout.h"

#include <charconv>
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

struct Known {
  Ternary kind;
  TernaryTiles tiles;
  bool preset;
};
// The sizes of microsoft/BitNet's set-up program, unchanged since its first version, for bitnet_b1_58-large
// and -3B and Llama3-8B-1.58; then those of its preset files, where they differ.
constexpr Known kKnown[] = {
    {Ternary::TL1, {1536, 4096, 256, 128, 32}, false},  {Ternary::TL1, {1536, 1536, 128, 64, 64}, false},
    {Ternary::TL1, {4096, 1536, 256, 128, 32}, false},  {Ternary::TL1, {3200, 8640, 160, 64, 32}, false},
    {Ternary::TL1, {3200, 3200, 320, 128, 64}, false},  {Ternary::TL1, {8640, 3200, 320, 64, 32}, false},
    {Ternary::TL1, {14336, 4096, 256, 128, 32}, false}, {Ternary::TL1, {4096, 14336, 128, 64, 64}, false},
    {Ternary::TL1, {1024, 4096, 256, 128, 32}, false},  {Ternary::TL1, {4096, 4096, 128, 64, 64}, false},
    {Ternary::TL2, {1536, 4096, 256, 96, 32}, false},   {Ternary::TL2, {1536, 1536, 128, 192, 32}, false},
    {Ternary::TL2, {4096, 1536, 256, 96, 32}, false},   {Ternary::TL2, {3200, 8640, 160, 96, 32}, false},
    {Ternary::TL2, {3200, 3200, 320, 96, 32}, false},   {Ternary::TL2, {8640, 3200, 320, 96, 32}, false},
    {Ternary::TL2, {14336, 4096, 256, 96, 32}, false},  {Ternary::TL2, {4096, 14336, 128, 96, 32}, false},
    {Ternary::TL2, {1024, 4096, 256, 96, 32}, false},   {Ternary::TL2, {4096, 4096, 128, 96, 32}, false},
    {Ternary::TL1, {14336, 4096, 256, 128, 64}, true},  {Ternary::TL1, {4096, 14336, 256, 128, 32}, true},
    {Ternary::TL1, {1024, 4096, 128, 64, 64}, true},    {Ternary::TL1, {4096, 4096, 128, 64, 32}, true},
};

const char* name_of(Ternary kind) { return kind == Ternary::TL1 ? "tl1" : "tl2"; }

// If the tiles do not fit, the file is damaged, or they belong to another matrix.
Status check(Ternary kind, const TernaryTiles& t) {
  const int64_t rows = t.rows, columns = t.columns, r = t.tile_rows, c = t.tile_columns, g = t.group;
  bool fits = r > 0 && c > 0 && (g == 32 || g == 64) && rows % r == 0 && r % g == 0;
  if (fits && kind == Ternary::TL1) fits = columns % c == 0 && c % (256 / g) == 0;
  if (fits && kind == Ternary::TL2)
    fits = g == 32 && c % 24 == 0 && columns % c % 32 == 0 && columns >= 256 && columns % c < 256;
  if (fits) return Done{};
  return Error{Code::Malformed,
               format("a {} matrix of {} x {} cannot be cut into tiles bm={} bk={} bmm={}", name_of(kind),
                      rows, columns, r, c, g),
               "the kernel configuration must be that of the program that converted the model"};
}

// ---- decoding: byte by byte in the order of a row, by the offset of its row plus that of its columns

struct Out {
  uint8_t* codes;  // of the row
  bool wrong = false;
  void put(int64_t column, int code) { codes[column] = uint8_t(code), wrong |= code > 2; }
};

// Bytes of one tile of rows, in three areas.
struct Tile {
  std::vector<uint8_t> codes, signs, twos;
};

int64_t threes_of(const TernaryTiles& t) { return t.columns - t.columns % t.tile_columns; }

void decode_two(int v, int64_t column, Out& out) {
  out.put(column, v / 3), out.put(column + 1, v % 3);  // from 9 on, the first code is invalid
}

void decode_tl1(const TernaryTiles& t, const Tile& tile, int64_t row, Out& out) {
  const int64_t by = 256 / t.group, g = t.group, bk = t.tile_columns, bm = t.tile_rows;
  const int64_t first = row / g * (g * bk / 4) + row % g / 16 * (4 * by) + row % 16;
  for (int64_t c = 0; c < t.columns; c += 4) {
    const int64_t in = c % bk;
    const uint8_t byte = tile.codes[size_t(first + c / bk * (bm * bk / 4) + in / by * 64 + in % by / 4 * 16)];
    decode_two(byte >> 4, c, out), decode_two(byte & 15, c + 2, out);
  }
}

void decode_tl2(const TernaryTiles& t, const Tile& tile, int64_t row, Out& out) {
  const int64_t bk = t.tile_columns, bm = t.tile_rows, threes = threes_of(t), l = row % 32;
  const int64_t place = l / 8 == 1   ? l + 8
                        : l / 8 == 2 ? l - 8
                                     : l;  // two groups of eight rows change places
  for (int64_t c = 0; c < threes; c += 3) {
    const int64_t in = c % bk;
    const uint8_t byte =
        tile.codes[size_t(c / bk * (bm * bk / 6) + row / 32 * (32 * bk / 6) + in / 6 * 32 + place)];
    const int size = in % 6 < 3 ? byte >> 4 : byte & 15;
    const auto word =
        size_t(2 * (c / bk * (bm * bk / 48) + row / 32 * (32 * bk / 48) + in / 24 * 16 + l % 16));
    const int bit = int(15 - 2 * (in % 24 / 3) - l / 16);
    const bool minus = (tile.signs[word] | tile.signs[word + 1] << 8) >> bit & 1;
    if (size > 13 || (minus && size == 0)) {
      out.wrong = true;
      return;
    }
    const int v = (minus ? -size : size) + 13;
    out.put(c, v / 9), out.put(c + 1, v / 3 % 3), out.put(c + 2, v % 3);
  }
  for (int64_t c = threes; c < t.columns; c += 4) {
    const int64_t d = c - threes;
    const uint8_t byte = tile.twos[size_t(d / 32 * (bm * 8) + row / 32 * 256 + d % 32 / 4 * 32 + place)];
    decode_two(byte >> 4, c, out), decode_two(byte & 15, c + 2, out);
  }
}

void decode_four_rows(const TernaryTiles& t, const Tile& tile, int64_t row, Out& out) {
  for (int64_t c = 0; c < t.columns; c++) out.put(c, tile.codes[size_t(c)] >> (6 - 2 * row) & 3);
}

}  // namespace

uint64_t ternary_bytes(Ternary kind, int64_t rows, int64_t columns) {
  if (kind != Ternary::TL2) return uint64_t(rows * columns / 4);
  // As the converter counts: an estimate, with 256 columns in twos. Each division rounds down.
  return uint64_t((columns - 256) * rows / 3 * 5 / 8 + 256 * rows / 2 * 4 / 8);
}

uint64_t ternary_region(Ternary kind, int64_t rows, int64_t columns) {
  return align_up(ternary_bytes(kind, rows, columns), uint64_t(32)) + 32;
}

Result<TernaryTiles> ternary_tiles(Ternary kind, int64_t rows, int64_t columns, const TernaryChoice& choice) {
  if (kind == Ternary::FourRows) return TernaryTiles{rows, columns, 4, int(columns), 4};
  auto checked = [&](const TernaryTiles& t) -> Result<TernaryTiles> {
    if (auto ok = check(kind, t); !ok) return ok.error();
    return t;
  };
  for (const TernaryTiles& t : choice.tiles)
    if (t.rows == rows && t.columns == columns) return checked(t);
  const std::string what = format("{} matrix of {} x {}", name_of(kind), rows, columns);
  const char* remedy =
      "name the kernel_config.ini of the program that converted the model: 'kernel_config' is its path";
  if (!choice.tiles.empty())
    return Error{Code::Unsupported, format("the kernel configuration has no section for a {}", what), remedy};
  const Known* found = nullptr;
  for (const Known& k : kKnown) {
    if (k.kind != kind || k.tiles.rows != rows || k.tiles.columns != columns) continue;
    if (found && !choice.decided)
      return Error{
          Code::Unsupported,
          format("two layouts of a {} are documented, and the file does not record which one it has", what),
          "choose one with 'kernel_config': default (the set-up program's), preset, or the path of a "
          "kernel_config.ini"};
    if (!found || choice.preset) found = &k;
  }
  if (found) return checked(found->tiles);
  return Error{
      Code::Unsupported,
      format("the file does not record the tile layout of a {}, and no published model has one", what),
      remedy};
}

Status read_ternary_rows(Ternary kind, const TernaryTiles& t, ReadCodes read, const void* source,
                         int64_t begin, int64_t end, uint8_t* to) {
  const int64_t threes = kind == Ternary::TL2 ? threes_of(t) : 0,
                twos = kind == Ternary::TL2 ? t.columns - threes : 0;
  // Bytes of each area in a tile of rows, and where the areas of the matrix begin.
  const auto signs = uint64_t(t.tile_rows * threes / 24), rest = uint64_t(t.tile_rows * twos / 4),
             codes = kind == Ternary::TL2 ? signs * 4 : uint64_t(t.tile_rows * t.columns / 4);
  const auto tiles = uint64_t(t.rows / t.tile_rows);
  Tile tile;
  tile.codes.resize(codes), tile.signs.resize(signs), tile.twos.resize(rest);
  int64_t held = -1;
  for (int64_t row = begin; row < end; row++, to += t.columns) {
    if (const int64_t n = row / t.tile_rows; n != held) {
      held = n;
      const std::pair<uint64_t, std::vector<uint8_t>*> areas[] = {
          {uint64_t(n) * codes, &tile.codes},
          {tiles * codes + uint64_t(n) * signs, &tile.signs},
          {tiles * (codes + signs) + uint64_t(n) * rest, &tile.twos}};
      for (auto [at, area] : areas) {
        if (area->empty()) continue;  // of TL1
        if (auto ok = read(source, at, area->data(), area->size()); !ok) return ok;
      }
    }
    Out out{to};
    const int64_t in_tile = row % t.tile_rows;
    if (kind == Ternary::TL1) decode_tl1(t, tile, in_tile, out);
    else if (kind == Ternary::TL2) decode_tl2(t, tile, in_tile, out);
    else decode_four_rows(t, tile, in_tile, out);
    if (out.wrong)
      return Error{Code::Malformed,
                   format("row {} of a ternary matrix of {} x {} has invalid codes of weights", row, t.rows,
                          t.columns),
                   "the file is damaged, or 'kernel_config' names the wrong layout"};
  }
  return Done{};
}

size_t find_code_3(const void* codes, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(codes);
  size_t i = 0;
  for (uint64_t eight; i + 8 <= bytes; i += 8) {
    std::memcpy(&eight, at + i, 8);
    if (eight & eight >> 1 & 0x5555555555555555) break;
  }
  while (i < bytes && !(at[i] & at[i] >> 1 & 0x55)) i++;
  return i;
}

Result<std::vector<TernaryTiles>> parse_kernel_config(std::string_view text, const std::string& name) {
  std::vector<TernaryTiles> all;
  int line_number = 0;
  auto wrong = [&](const std::string& expected) {
    return Error{Code::Malformed, format("{}, line {}: expected {}", name, line_number, expected), ""};
  };
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    line_number++;
    line = trimmed(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      all.emplace_back();
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == line.npos || all.empty()) return wrong("[SECTION] or KEY = NUMBER");
    const std::string_view key = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
    int number = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || stop != value.data() + value.size() || number < 1)
      return wrong("a number of at least 1");
    TernaryTiles& t = all.back();
    if (key == "m") t.rows = number;
    else if (key == "k") t.columns = number;
    else if (key == "bm") t.tile_rows = number;
    else if (key == "bk") t.tile_columns = number;
    else if (key == "bmm") t.group = number;
    else return wrong("m, k, bm, bk or bmm");
  }
  if (all.empty()) return wrong("a section with m, k, bm, bk and bmm");
  for (const TernaryTiles& t : all)
    if (!t.rows || !t.columns || !t.tile_rows || !t.tile_columns || !t.group)
      return Error{Code::Malformed, format("{}: a section lacks one of m, k, bm, bk and bmm", name), ""};
  return all;
}

Result<TernaryChoice> ternary_choice(const std::string& text) {
  TernaryChoice choice;
  if (text.empty()) return choice;
  if (text == "default" || text == "preset") {
    choice.decided = true, choice.preset = text == "preset";
    return choice;
  }
  for (auto [word, i2_s] : {std::pair<const char*, int>{"i2_s-128", 128}, {"i2_s-64", 64}, {"i2_s-4x1", 4}})
    if (text == word) {
      choice.i2_s = i2_s;
      return choice;
    }
  auto bytes = read_file(text);
  if (!bytes) return bytes.error();
  auto tiles = parse_kernel_config(*bytes, gimbal::quoted(text));
  if (!tiles) return tiles.error();
  choice.tiles = std::move(*tiles);
  return choice;
}

}  // namespace gimbal
