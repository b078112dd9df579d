#include "files/model_source.h"

#include <algorithm>
#include <deque>

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

namespace gimbal {
namespace {

// The tensors of two readers, first those of the first one.
class JoinedReader final : public TensorReader {
 public:
  JoinedReader(std::shared_ptr<const TensorReader> first, size_t tensors,
               std::shared_ptr<const TensorReader> second)
      : first_(std::move(first)), tensors_(tensors), second_(std::move(second)) {}

  // Keeps the name of a tensor of the second reader.
  std::string_view name(std::string name) { return names_.emplace_back(std::move(name)); }

  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override {
    return tensor < tensors_ ? first_->read(tensor, offset, to, bytes)
                             : second_->read(tensor - tensors_, offset, to, bytes);
  }
  uint64_t file_bytes() const override { return first_->file_bytes() + second_->file_bytes(); }
  FileIdentity identity() const override {
    const FileIdentity a = first_->identity(), b = second_->identity();
    return {a.bytes + b.bytes, Hash().add(a.headers).add(b.headers).value(),
            std::max(a.modified, b.modified)};
  }
  bool is(const std::string& path) const override { return first_->is(path) || second_->is(path); }

 private:
  std::shared_ptr<const TensorReader> first_;
  size_t tensors_;
  std::shared_ptr<const TensorReader> second_;
  std::deque<std::string> names_;
};

}  // namespace

Result<std::vector<std::byte>> ModelSource::read(const StoredTensor& tensor) const {
  std::vector<std::byte> all(tensor.bytes);
  if (auto ok = read(tensor, 0, all.data(), all.size()); !ok) return ok.error();
  return all;
}

Status ModelSource::join(const ModelSource& other, const Adapter& as) {
  auto reader = std::make_shared<JoinedReader>(reader_, tensors_.size(), other.reader_);
  TensorTable all = tensors_;
  uint32_t parts = 0;
  for (const StoredTensor& t : tensors_) parts = std::max(parts, t.part + 1);
  for (StoredTensor t : other.tensors_) {
    t.name = reader->name(std::string(t.name) + as.suffix), t.part += parts;
    if (!all.add(t))
      return Error{Code::Malformed, format("{}: duplicate tensor {}", other.path(), quoted(t.name)), ""};
  }
  if (auto ok = other.tensors_.readable(); !ok) all.unreadable(ok.error());
  all.add(as);
  tensors_ = std::move(all);
  reader_ = std::move(reader);
  return Done{};
}

void ModelSource::set(const std::string& key, std::string_view text) {
  texts_.push_back(std::make_shared<const std::string>(key));
  const std::string_view kept = *texts_.back();
  texts_.push_back(std::make_shared<const std::string>(text));
  metadata_.put(kept, {MetadataType::String, std::string_view(*texts_.back())});
  changed_.push_back(key);
}

void ModelSource::set(const std::string& key, double number) {
  texts_.push_back(std::make_shared<const std::string>(key));
  metadata_.put(*texts_.back(), {MetadataType::F64, number});
  changed_.push_back(key);
}

}  // namespace gimbal
