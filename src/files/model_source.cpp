#include "files/model_source.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <map>

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

namespace {

struct FileType {
  uint64_t number;
  const char* name;
  const char* format;  // of its tensors: a file with a wrong number has none
};

// Numbers: `general.file_type` of docs/gguf.md in ggml, and those that llama.h added since.
constexpr FileType kFileTypes[] = {
    {0, "F32", "f32"},          {1, "F16", "f16"},        {2, "Q4_0", "q4_0"},      {3, "Q4_1", "q4_1"},
    {7, "Q8_0", "q8_0"},        {8, "Q5_0", "q5_0"},      {9, "Q5_1", "q5_1"},      {10, "Q2_K", "q2_k"},
    {11, "Q3_K_S", "q3_k"},     {12, "Q3_K_M", "q3_k"},   {13, "Q3_K_L", "q3_k"},   {14, "Q4_K_S", "q4_k"},
    {15, "Q4_K_M", "q4_k"},     {16, "Q5_K_S", "q5_k"},   {17, "Q5_K_M", "q5_k"},   {18, "Q6_K", "q6_k"},
    {19, "IQ2_XXS", "iq2_xxs"}, {20, "IQ2_XS", "iq2_xs"}, {21, "Q2_K_S", "q2_k"},   {22, "IQ3_XS", "iq3_xxs"},
    {23, "IQ3_XXS", "iq3_xxs"}, {24, "IQ1_S", "iq1_s"},   {25, "IQ4_NL", "iq4_nl"}, {26, "IQ3_S", "iq3_s"},
    {27, "IQ3_M", "iq3_s"},     {28, "IQ2_S", "iq2_xs"},  {29, "IQ2_M", "iq2_s"},   {30, "IQ4_XS", "iq4_xs"},
    {31, "IQ1_M", "iq1_m"},     {32, "BF16", "bf16"},     {36, "TQ1_0", "tq1_0"},   {37, "TQ2_0", "tq2_0"},
    {38, "MXFP4_MOE", "mxfp4"},
};
constexpr uint64_t kGuessed = 1024;  // a flag beside the number

}  // namespace

std::string quantization_of(const ModelSource& file) {
  std::map<std::string_view, uint64_t> bytes;
  for (const StoredTensor& t : file.tensors()) bytes[stored_name(t)] += t.stored;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return "";
  if (const auto number = file.metadata().unsigned_integer("general.file_type"))
    for (const FileType& t : kFileTypes) {
      // Every file has small tensors in f32.
      const bool there = t.number == 0 ? most->first == t.format : bytes.contains(t.format);
      if (t.number == (*number & ~kGuessed) && there) return t.name;
    }
  std::string name(most->first);
  for (char& c : name) c = char(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace gimbal
