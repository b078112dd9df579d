#include "quantize/quantize.h"

#include <cstring>

#include "base/format.h"
#include "base/hash.h"
#include "quantize/tensor_encoder.h"
#include "tensor/format.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

class QuantizedReader final : public TensorReader {
 public:
  QuantizedReader(const QuantizeWork& work, std::vector<TensorFormat> formats, uint64_t bytes)
      : source_(work.source),
        formats_(std::move(formats)),
        rows_(source_, formats_, work.importance),
        bytes_(bytes),
        rules_(Hash().add(work.derivation.rules.text()).value()) {}

  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override {
    const StoredTensor& t = source_.tensors()[tensor];
    const TensorFormat& f = formats_[tensor];
    if (!f.quantized) return source_.read(t, offset, to, bytes);
    if (bytes == 0) return Done{};
    const auto row = uint64_t(row_bytes(f.format, t.dim[0]));
    const uint64_t first = offset / row, end = (offset + bytes + row - 1) / row;
    if (end > uint64_t(t.values() / t.dim[0]) || offset + bytes < offset)
      return Error{Code::Failed, format("{}: a read beyond the end of a tensor", source_.path()), ""};
    const auto scale = rows_.scale_of(t);
    if (!scale) return scale.error();
    RowEncoder::Room room;
    std::vector<uint8_t> encoded(size_t((end - first) * row));
    if (auto ok = rows_.encode(t, *scale, int64_t(first), int64_t(end - first), room, encoded.data()); !ok)
      return ok;
    std::memcpy(to, encoded.data() + (offset - first * row), bytes);
    return Done{};
  }
  uint64_t file_bytes() const override { return bytes_; }
  FileIdentity identity() const override {
    FileIdentity all = source_.reader().identity();
    all.bytes = bytes_, all.headers ^= rules_;
    return all;
  }
  bool is(const std::string& path) const override { return source_.is(path); }

 private:
  const ModelSource& source_;
  std::vector<TensorFormat> formats_;
  RowEncoder rows_;
  uint64_t bytes_, rules_;
};

}  // namespace

Result<ModelSource> quantized_source(const QuantizeWork& work) {
  auto totals = plan_quantization(work);
  if (!totals) return totals.error();
  auto formats = formats_of(work.source, work.derivation.rules, work.importance);
  if (!formats) return formats.error();
  TensorTable tensors = work.source.tensors();
  for (size_t i = 0; i < tensors.size(); i++) {
    if (!(*formats)[i].quantized) continue;
    StoredTensor& t = tensors[i];
    t.type = (*formats)[i].format;
    t.bytes = t.stored = uint64_t(row_bytes(t.type, t.dim[0]) * (t.values() / t.dim[0]));
    t.ternary = Ternary::None;
  }
  auto reader = std::make_shared<QuantizedReader>(work, std::move(*formats), totals->bytes);
  return ModelSource(work.source.file_format(), work.source.metadata(), std::move(tensors),
                     std::move(reader));
}

}  // namespace gimbal
