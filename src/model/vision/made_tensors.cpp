#include "model/vision/made_tensors.h"

#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "tensor/quant.h"

namespace gimbal {

void MadeTensors::add(const StoredTensor& tensor, std::string name) {
  StoredTensor t = tensor;
  t.name = names_.emplace_back(std::move(name));
  complete_ = tensors_.add(t) && complete_;
  origins_.push_back({tensor.index, {}});
}

void MadeTensors::add(std::string name, int64_t columns, int64_t rows, std::vector<float> values) {
  StoredTensor t{};
  t.name = names_.emplace_back(std::move(name));
  t.type = DType::F32, t.rank = 2;
  for (int64_t& d : t.dim) d = 1;
  t.dim[0] = columns, t.dim[1] = rows;
  t.bytes = t.stored = values.size() * sizeof(float);
  complete_ = tensors_.add(t) && complete_;
  origins_.push_back({0, std::move(values)});
}

Status MadeTensors::read(size_t tensor, uint64_t offset, void* to, size_t bytes) const {
  if (tensor >= origins_.size())
    return Error{Code::Failed, format("{}: there is no tensor {}", of_.path(), tensor), ""};
  const Origin& from = origins_[tensor];
  if (from.values.empty()) return of_.reader().read(from.index, offset, to, bytes);
  const uint64_t all = from.values.size() * sizeof(float);
  if (offset > all || bytes > all - offset)
    return Error{Code::Failed, format("{}: bytes outside tensor {}", of_.path(), tensor), ""};
  std::memcpy(to, reinterpret_cast<const std::byte*>(from.values.data()) + offset, bytes);
  return Done{};
}

Result<std::vector<float>> values_of(const ModelSource& file, const StoredTensor& t, int64_t most) {
  if (!can_decode(t.type))
    return Error{Code::Unsupported,
                 format("{}: tensor {} is {}, which is not a format for weights", file.path(), quoted(t.name),
                        info(t.type).name),
                 ""};
  if (t.values() > most)
    return Error{Code::Malformed,
                 format("{}: tensor {} has {} values; an encoder of pictures has at most {}", file.path(),
                        quoted(t.name), t.values(), most),
                 ""};
  auto bytes = file.read(t);
  if (!bytes) return bytes.error();
  std::vector<float> values(size_t(t.values()));
  decode_tensor(t.type, bytes->data(), t.values(), values.data());
  return values;
}

}  // namespace gimbal
