#include "files/model_source.h"

#include <algorithm>
#include <deque>

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

namespace gimbal {
namespace {

// The tensors of a reader, and behind them some of a second one.
class JoinedReader final : public TensorReader {
 public:
  JoinedReader(std::shared_ptr<const TensorReader> first, const TensorTable& tensors,
               std::shared_ptr<const TensorReader> second)
      : first_(std::move(first)), second_(std::move(second)), all_(tensors), own_(tensors.size()) {
    for (const StoredTensor& t : tensors) parts_ = std::max(parts_, t.part + 1);
  }

  // False when the name is there already.
  bool add(StoredTensor t, std::string name) {
    others_.push_back(t.index);
    t.name = names_.emplace_back(std::move(name)), t.part += parts_;
    return all_.add(t);
  }
  TensorTable& tensors() { return all_; }

  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override {
    return tensor < own_ ? first_->read(tensor, offset, to, bytes)
                         : second_->read(others_[tensor - own_], offset, to, bytes);
  }
  uint64_t file_bytes() const override { return first_->file_bytes() + second_->file_bytes(); }
  FileIdentity identity() const override {
    const FileIdentity a = first_->identity(), b = second_->identity();
    return {a.bytes + b.bytes, Hash().add(a.headers).add(b.headers).value(),
            std::max(a.modified, b.modified)};
  }
  bool is(const std::string& path) const override { return first_->is(path) || second_->is(path); }

 private:
  std::shared_ptr<const TensorReader> first_, second_;
  TensorTable all_;
  const size_t own_;            // tensors of the first reader
  std::vector<size_t> others_;  // the others, in the second reader
  std::deque<std::string> names_;
  uint32_t parts_ = 0;
};

}  // namespace

Result<std::vector<std::byte>> ModelSource::read(const StoredTensor& tensor) const {
  std::vector<std::byte> all(tensor.bytes);
  if (auto ok = read(tensor, 0, all.data(), all.size()); !ok) return ok.error();
  return all;
}

Status ModelSource::join(const ModelSource& other, const Adapter& as) {
  auto reader = std::make_shared<JoinedReader>(reader_, tensors_, other.reader_);
  for (const StoredTensor& t : other.tensors_) {
    const std::string name = std::string(t.name) + as.suffix;
    if (!reader->add(t, name))
      return Error{Code::Malformed, format("{}: duplicate tensor {}", other.path(), quoted(name)), ""};
  }
  TensorTable& all = reader->tensors();
  if (auto ok = other.tensors_.readable(); !ok) all.unreadable(ok.error());
  all.add(as);
  tensors_ = std::move(all);
  reader_ = std::move(reader);
  return Done{};
}

bool ModelSource::borrow(const ModelSource& other, std::string_view tensor, std::string name) {
  const StoredTensor* t = other.tensors_.find(tensor);
  if (!t) return false;
  auto reader = std::make_shared<JoinedReader>(reader_, tensors_, other.reader_);
  if (!reader->add(*t, std::move(name))) return false;
  tensors_ = std::move(reader->tensors());
  reader_ = std::move(reader);
  return true;
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
