#include "huggingface/recipe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/format.h"
#include "base/hash.h"
#include "tensor/half.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

constexpr int64_t kConverted = 1 << 14;  // values that are converted at once

// "FP8 Formats for Deep Learning" (Micikevicius et al., 2022): 4 bits of exponent, 3 of mantissa, no
// infinities.
float f8_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude =
      exponent ? std::ldexp(float(8 + mantissa), exponent - 10) : std::ldexp(float(mantissa), -9);
  return bits & 128 ? -magnitude : magnitude;
}

}  // namespace

FileIdentity FolderReader::identity() const {
  const FileIdentity weights = shards_->identity(), texts = identity_of(others_);
  return {weights.bytes, Hash().add(weights.headers).add(texts.headers).value(),
          std::max(weights.modified, texts.modified)};
}

bool FolderReader::is(const std::string& path) const {
  return shards_->is(path) ||
         std::any_of(others_.begin(), others_.end(), [&](const FileBytes& f) { return f.is(path); });
}

DType FolderReader::type_of_rows(const Recipe& r) const {
  const Recipe::Piece& p = r.pieces.front();
  return p.scales < 0 ? stored_[p.tensor].type : DType::BF16;
}

// Rows of fp8 times their scales, as bf16.
Status FolderReader::read_scaled(const Recipe::Piece& p, int64_t row_values, int64_t first, int64_t rows,
                                 std::byte* to) const {
  const StoredTensor& s = stored_[size_t(p.scales)];
  std::vector<std::byte> raw(size_t(s.bytes));
  if (auto ok = shards_->read(s.index, 0, raw.data(), raw.size()); !ok) return ok;
  std::vector<float> scales(static_cast<size_t>(s.values()));
  decode(s.type, raw.data(), s.values(), scales.data());
  const int64_t across = (row_values + p.block_columns - 1) / p.block_columns;
  raw.resize(size_t(row_values));
  for (int64_t row = first; row < first + rows; row++) {
    if (auto ok = shards_->read(p.tensor, uint64_t(row * row_values), raw.data(), raw.size()); !ok) return ok;
    const float* of_row = &scales[size_t(row / p.block_rows * across)];
    for (int64_t i = 0; i < row_values; i++, to += sizeof(uint16_t)) {
      const uint16_t value = float_to_bf16(f8_e4m3(uint8_t(raw[size_t(i)])) * of_row[i / p.block_columns]);
      std::memcpy(to, &value, sizeof value);
    }
  }
  return Done{};
}

// Whole rows, in the stored format; of fp8 in bf16.
Status FolderReader::read_rows(const Recipe& r, int64_t first, int64_t end, std::byte* to) const {
  for (const Recipe::Piece& p : r.pieces) {
    const int64_t upto = std::min(end, p.rows);
    const auto row = uint64_t(row_bytes(type_of_rows(r), r.row_values));
    for (int64_t at = std::max<int64_t>(0, first); at < upto;) {
      // Rows that lie one after the other are read at once.
      const int64_t from = r.order.empty() ? at : r.order[size_t(at)];
      int64_t n = 1;
      if (r.order.empty()) n = upto - at;
      else
        while (at + n < upto && r.order[size_t(at + n)] == from + n) n++;
      const auto bytes = size_t(uint64_t(n) * row);
      const auto ok = p.scales < 0 ? shards_->read(p.tensor, uint64_t(p.first_row + from) * row, to, bytes)
                                   : read_scaled(p, r.row_values, p.first_row + from, n, to);
      if (!ok) return ok;
      to += bytes, at += n;
    }
    first -= p.rows, end -= p.rows;
    if (end <= 0) break;
  }
  return Done{};
}

// Any bytes of a tensor in its stored format. Rows that are in order are read without their neighbours.
Status FolderReader::read_part(const Recipe& r, uint64_t offset, std::byte* to, size_t bytes) const {
  const auto row = uint64_t(row_bytes(type_of_rows(r), r.row_values));
  std::vector<std::byte> part;
  while (bytes) {
    const uint64_t first = offset / row, within = offset % row;
    if (within == 0 && bytes >= row) {
      const uint64_t whole = bytes / row;
      if (auto ok = read_rows(r, int64_t(first), int64_t(first + whole), to); !ok) return ok;
      offset += whole * row, to += whole * row, bytes -= size_t(whole * row);
      continue;
    }
    part.resize(size_t(row));
    if (auto ok = read_rows(r, int64_t(first), int64_t(first + 1), part.data()); !ok) return ok;
    const auto n = size_t(std::min<uint64_t>(bytes, row - within));
    std::memcpy(to, part.data() + within, n);
    offset += n, to += n, bytes -= n;
  }
  return Done{};
}

Status FolderReader::read(size_t index, uint64_t offset, void* to, size_t bytes) const {
  if (auto ok = check_inside(name_, tensors_, index, offset, bytes); !ok) return ok;
  if (!bytes) return Done{};
  const Recipe& r = recipes_[index];
  auto* out = static_cast<std::byte*>(to);
  if (!r.made.empty()) return std::memcpy(out, r.made.data() + offset, bytes), Done{};
  if (!r.to_f32) {
    const bool as_stored = r.pieces.size() == 1 && r.order.empty() && r.pieces.front().scales < 0;
    const auto skipped = uint64_t(row_bytes(stored_[r.pieces.front().tensor].type, r.row_values)) *
                         uint64_t(r.pieces.front().first_row);
    if (as_stored) return shards_->read(r.pieces.front().tensor, skipped + offset, out, bytes);
    return read_part(r, offset, out, bytes);
  }
  const DType from = type_of_rows(r);
  const auto size = uint64_t(info(from).bytes);
  std::vector<std::byte> raw;
  std::vector<float> values;
  while (bytes) {
    const uint64_t first = offset / sizeof(float), within = offset % sizeof(float);
    const uint64_t n = std::min<uint64_t>(kConverted, (within + bytes + sizeof(float) - 1) / sizeof(float));
    raw.resize(size_t(n * size)), values.resize(size_t(n));
    if (auto ok = read_part(r, first * size, raw.data(), raw.size()); !ok) return ok;
    decode(from, raw.data(), int64_t(n), values.data());
    if (r.change == Recipe::Change::AddOne)
      for (float& v : values) v += 1;
    const auto part = size_t(std::min<uint64_t>(bytes, n * sizeof(float) - within));
    std::memcpy(out, reinterpret_cast<const std::byte*>(values.data()) + within, part);
    offset += part, out += part, bytes -= part;
  }
  return Done{};
}

Result<Bytes> FolderReader::map(size_t index) const {
  if (auto ok = check_inside(name_, tensors_, index, 0, 0); !ok) return ok.error();
  const Recipe& r = recipes_[index];
  if (!r.made.empty() || r.to_f32 || !r.order.empty() || r.pieces.size() != 1 || r.pieces.front().scales >= 0)
    return TensorReader::map(index);
  auto all = shards_->map(r.pieces.front().tensor);
  if (!all) return all;
  const auto skipped = uint64_t(row_bytes(stored_[r.pieces.front().tensor].type, r.row_values)) *
                       uint64_t(r.pieces.front().first_row);
  return all->subspan(size_t(skipped), size_t(tensors_[index].bytes));
}

}  // namespace gimbal
