// hot: Rows are read, decoded, encoded.
#include "quantize/tensor_encoder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/format.h"
#include "base/text.h"
#include "tensor/format.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

constexpr int64_t kWindowValues = 1 << 22, kPieceValues = 1 << 15;

int64_t rows_of(const StoredTensor& t) { return t.values() / t.dim[0]; }

uint64_t values_at(DType format, uint64_t bytes) {
  return bytes / uint64_t(info(format).bytes) * uint64_t(info(format).block);
}

// In runs of a constant length, which become vectors.
bool are_finite(std::span<const float> values) {
  constexpr size_t kRun = 32;
  uint32_t wrong = 0;
  const auto look = [&](float v) { wrong |= (std::bit_cast<uint32_t>(v) & 0x7f800000) == 0x7f800000; };
  for (; values.size() >= kRun; values = values.subspan(kRun))
    for (size_t i = 0; i < kRun; i++) look(values[i]);
  for (const float v : values) look(v);
  return wrong == 0;
}

}  // namespace

Result<float> RowEncoder::scale_of(const StoredTensor& t) const {
  float scale = 1;
  if (!tensor_tail_bytes(t.type)) return scale;
  const auto at = uint64_t(row_bytes(t.type, t.values()));
  if (auto ok = source_.read(t, at, &scale, sizeof scale); !ok) return ok.error();
  return scale;
}

Status RowEncoder::encode(const StoredTensor& t, float scale, int64_t first, int64_t count, Room& room,
                          uint8_t* out) const {
  const int64_t width = t.dim[0];
  const DType to = formats_[t.index].format;
  const auto from_row = uint64_t(row_bytes(t.type, width));
  auto& [stored, values] = room;
  stored.resize(size_t(from_row * uint64_t(count))), values.resize(size_t(width * count));
  if (auto ok = source_.read(t, from_row * uint64_t(first), stored.data(), stored.size()); !ok) return ok;
  decode(t.type, stored.data(), width * count, values.data(), scale);
  const bool finite = are_finite(values);
  for (size_t i = 0; i < values.size() && !finite; i++)
    if (!(values[i] - values[i] == 0))
      return Error{Code::Malformed,
                   format("{}: row {} of tensor {} has a weight that is not finite", source_.path(),
                          first + int64_t(i) / width, quoted(t.name)),
                   "the model is damaged, or was trained with an overflow; it cannot be quantized"};
  const std::vector<float>* weights = importance_ ? importance_->find(t.name) : nullptr;
  for (int64_t r = 0; r < count; r++) {
    // Each expert has importance of its own.
    const int64_t expert = (first + r) / t.dim[1];
    gimbal::encode(to, values.data() + width * r, width, out + row_bytes(to, width) * r,
                   weights ? weights->data() + width * expert : nullptr);
  }
  return Done{};
}

TensorEncoder::TensorEncoder(const ModelSource& source, const std::vector<TensorFormat>& formats,
                             const Importance* importance, int threads,
                             std::function<bool(uint64_t)> progress)
    : source_(source),
      formats_(formats),
      rows_(source, formats, importance),
      threads_(std::max(threads, 1)),
      progress_(std::move(progress)) {}

Status TensorEncoder::read(const StoredTensor& t, uint64_t offset, void* to, size_t bytes) {
  const TensorFormat& f = formats_[t.index];
  if (!f.quantized) {
    if (auto ok = check_stopped(); !ok) return ok;
    reached(t, values_at(t.type, offset + bytes));
    return source_.read(t, offset, to, bytes);
  }
  const auto row = uint64_t(row_bytes(f.format, t.dim[0]));
  auto* out = static_cast<uint8_t*>(to);
  while (bytes) {
    const uint64_t begin = uint64_t(first_row_) * row;
    if (tensor_ != &t || offset < begin || offset >= begin + window_.size()) {
      if (auto ok = encode_window(t, int64_t(offset / row)); !ok) return ok;
      continue;
    }
    const size_t n = size_t(std::min<uint64_t>(bytes, begin + window_.size() - offset));
    std::memcpy(out, window_.data() + (offset - begin), n);
    out += n, offset += n, bytes -= n;
  }
  return Done{};
}

Status TensorEncoder::skip(const StoredTensor& t, uint64_t offset, size_t bytes) {
  if (auto ok = check_stopped(); !ok) return ok;
  const TensorFormat& f = formats_[t.index];
  reached(t, values_at(f.quantized ? f.format : t.type, offset + bytes));
  return Done{};
}

// `values` of this tensor are done, and all of those before it. The next work fails if the caller wants no
// more: finished work is not lost.
void TensorEncoder::reached(const StoredTensor& t, uint64_t values) {
  if (counted_ != &t) before_ += counted_ ? uint64_t(counted_->values()) : 0, counted_ = &t;
  if (progress_ && !progress_(before_ + std::min(values, uint64_t(t.values())))) stopped_ = true;
}

Status TensorEncoder::check_stopped() const {
  if (!stopped_) return Done{};
  return Error{Code::Failed, "interrupted", ""};
}

Status TensorEncoder::encode_window(const StoredTensor& t, int64_t first_row) {
  if (auto ok = check_stopped(); !ok) return ok;
  const int64_t width = t.dim[0], per_piece = std::max<int64_t>(1, kPieceValues / width),
                rows = std::min(rows_of(t) - first_row, std::max<int64_t>(per_piece, kWindowValues / width));
  const auto scale = rows_.scale_of(t);
  if (!scale) return scale.error();
  tensor_ = &t, first_row_ = first_row;
  const DType to = formats_[t.index].format;
  window_.resize(size_t(row_bytes(to, width) * rows));
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::optional<Error> error;
  const auto work = [&] {
    RowEncoder::Room room;
    for (int64_t r; (r = next.fetch_add(per_piece)) < rows;) {
      auto ok = rows_.encode(t, *scale, first_row + r, std::min(per_piece, rows - r), room,
                             window_.data() + row_bytes(to, width) * r);
      if (ok) continue;
      const std::lock_guard lock(mutex);
      if (!error) error = ok.error();
      next = rows;
    }
  };
  std::vector<std::thread> others;
  const int64_t pieces = (rows + per_piece - 1) / per_piece;
  for (int i = 1; i < std::min<int64_t>(threads_, pieces); i++) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (error) return *error;
  reached(t, uint64_t((first_row + rows) * width));
  return Done{};
}

}  // namespace gimbal
