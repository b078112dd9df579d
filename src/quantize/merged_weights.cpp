#include "quantize/merged_weights.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

constexpr int64_t kMergedValues = 1 << 20;

Result<std::vector<float>> values_of(const ModelSource& source, const StoredTensor& t) {
  auto bytes = source.read(t);
  if (!bytes) return bytes.error();
  std::vector<float> all(size_t(t.values()));
  decode_tensor(t.type, bytes->data(), t.values(), all.data());
  return all;
}

}  // namespace

Result<MergedWeights> MergedWeights::of(const ModelSource& source) {
  MergedWeights merged(source);
  const TensorTable& tensors = source.tensors();
  for (const Adapter& adapter : tensors.adapters())
    for (const StoredTensor& t : tensors) {
      const std::string suffix = ".lora_a" + adapter.suffix;
      if (t.name.ends_with(".lora_b" + adapter.suffix)) merged.adapter_[t.index] = true;
      if (!t.name.ends_with(suffix)) continue;
      merged.adapter_[t.index] = true;
      const std::string name(t.name.substr(0, t.name.size() - suffix.size()));
      const StoredTensor *weight = tensors.find(name), *up = tensors.find(name + ".lora_b" + adapter.suffix);
      if (!weight || !up || !can_decode(t.type) || !can_decode(up->type) || t.dim[0] != weight->dim[0] ||
          up->dim[0] != t.dim[1] || up->dim[1] != weight->dim[1] || t.dim[2] != weight->dim[2] ||
          up->dim[2] != weight->dim[2] || weight->dim[3] != 1)
        return Error{Code::Malformed,
                     format("{}: the matrices for {} do not have the shapes of a low-rank change of it",
                            adapter.path, quoted(name)),
                     "the adapter was made for another model"};
      if (info(weight->type).block != 1)
        return Error{Code::Unsupported,
                     format("{}: {} is {}; adapters are added to weights in f32, f16 or bf16 only",
                            source.path(), quoted(name), info(weight->type).name),
                     "merge into the original model, then quantize the result"};
      const float alpha = adapter.alpha, rank = float(t.dim[1]);
      merged.changed_[weight->index].push_back(
          {&t, up, alpha == 0 ? adapter.scale : adapter.scale * alpha / rank});
    }
  return merged;
}

Status MergedWeights::load(const StoredTensor& t, const std::vector<Pair>& pairs) {
  loaded_.clear();
  for (const Pair& p : pairs) {
    auto down = values_of(source_, *p.down), up = values_of(source_, *p.up);
    if (!down) return down.error();
    if (!up) return up.error();
    loaded_.push_back({std::move(*down), std::move(*up), p.down->dim[1], p.factor});
  }
  tensor_ = &t, window_.clear();
  return Done{};
}

Status MergedWeights::merge_rows(const StoredTensor& t, int64_t first) {
  const int64_t width = t.dim[0], all = t.values() / width,
                rows = std::min(all - first, std::max<int64_t>(1, kMergedValues / width));
  window_.resize(size_t(row_bytes(t.type, width * rows)));
  if (auto ok = source_.read(t, uint64_t(row_bytes(t.type, width * first)), window_.data(), window_.size());
      !ok)
    return ok;
  std::vector<float> values(size_t(width * rows)), change(static_cast<size_t>(width));
  decode(t.type, window_.data(), width * rows, values.data());
  for (int64_t r = 0; r < rows; r++)
    for (const Loaded& l : loaded_) {
      const int64_t matrix = (first + r) / t.dim[1];
      const float* up = l.up.data() + (first + r) * l.rank;
      const float* down = l.down.data() + matrix * l.rank * width;
      std::fill(change.begin(), change.end(), 0.0f);
      for (int64_t k = 0; k < l.rank; k++)
        for (int64_t c = 0; c < width; c++) change[size_t(c)] += up[k] * down[k * width + c];
      for (int64_t c = 0; c < width; c++) values[size_t(r * width + c)] += l.factor * change[size_t(c)];
    }
  encode(t.type, values.data(), width * rows, window_.data());
  first_row_ = first;
  return Done{};
}

Status MergedWeights::read(const StoredTensor& t, uint64_t offset, void* to, size_t bytes) {
  const auto found = changed_.find(t.index);
  if (found == changed_.end()) return source_.read(t, offset, to, bytes);
  if (tensor_ != &t) {
    if (auto ok = load(t, found->second); !ok) return ok;
  }
  const auto row = uint64_t(row_bytes(t.type, t.dim[0]));
  auto* out = static_cast<uint8_t*>(to);
  while (bytes) {
    const uint64_t begin = uint64_t(first_row_) * row;
    if (window_.empty() || offset < begin || offset >= begin + window_.size()) {
      if (auto ok = merge_rows(t, int64_t(offset / row)); !ok) return ok;
      continue;
    }
    const size_t n = size_t(std::min<uint64_t>(bytes, begin + window_.size() - offset));
    std::memcpy(out, window_.data() + (offset - begin), n);
    out += n, offset += n, bytes -= n;
  }
  return Done{};
}

}  // namespace gimbal
