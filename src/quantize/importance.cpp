#include "quantize/importance.h"

#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/gguf.h"

namespace gimbal {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
constexpr uint64_t kMostBytes = uint64_t(1) << 30;

Error damaged(const std::string& name, std::string what) {
  return {Code::Malformed, format("{}: {}", escaped(name), what),
          "an importance matrix is expected, as `llama-imatrix` writes it"};
}

bool usable(const std::vector<float>& weights) {
  for (float w : weights)
    if (!(w >= 0 && w <= 3e38f)) return false;
  return true;
}

// The binary form: a number of entries; of each the length of its name, the name, the number of calls, the
// number of values, and sums that were divided by tokens and multiplied by calls. What follows names the
// text.
class OldReader {
 public:
  OldReader(Bytes bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<Importance> read() {
    Importance all;
    const auto entries = number();
    if (!entries || *entries < 1) return cut("a positive number of entries");
    for (int32_t i = 0; i < *entries; i++) {
      const auto length = number();
      if (!length || *length < 1 || uint64_t(*length) > bytes_.size() - at_)
        return cut("the length of a name");
      std::string name(reinterpret_cast<const char*>(bytes_.data()) + at_, size_t(*length));
      at_ += size_t(*length);
      const auto calls = number(), values = number();
      if (!calls || !values || *values < 1 || uint64_t(*values) * 4 > bytes_.size() - at_)
        return cut("the number of values of " + quoted(name));
      std::vector<float> weights(static_cast<size_t>(*values));
      std::memcpy(weights.data(), bytes_.data() + at_, weights.size() * sizeof(float));
      at_ += weights.size() * sizeof(float);
      if (*calls > 0)
        for (float& w : weights) w /= float(*calls);
      if (!usable(weights))
        return damaged(name_, format("{} has a weight that is negative or not finite", quoted(name)));
      all.add(std::move(name), std::move(weights));
    }
    return all;
  }

 private:
  std::optional<int32_t> number() {
    if (bytes_.size() - at_ < 4) return std::nullopt;
    const auto value = read_le<int32_t>(bytes_.data() + at_);
    at_ += 4;
    return value;
  }
  Error cut(const std::string& what) const {
    return damaged(name_, format("expected {} at byte {} of {}", what, at_, bytes_.size()));
  }

  Bytes bytes_;
  const std::string& name_;
  size_t at_ = 0;
};

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> all(bytes.size() / sizeof(float));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(float));
  return all;
}

// Two tensors for each matrix: sums of squares, a row for each expert, and the number of tokens of each.
Result<Importance> from_gguf(const ModelSource& file, const std::string& name) {
  Importance all;
  for (const StoredTensor& t : file.tensors()) {
    if (!t.name.ends_with(kSums)) continue;
    const std::string matrix(t.name.substr(0, t.name.size() - kSums.size()));
    const StoredTensor* counted = file.tensors().find(matrix + std::string(kCounts));
    if (!counted || t.type != DType::F32 || counted->type != DType::F32)
      return damaged(name, format("{} has no sums and counts in f32", quoted(matrix)));
    const auto sums_read = file.read(t), counts_read = file.read(*counted);
    if (!sums_read) return sums_read.error();
    if (!counts_read) return counts_read.error();
    std::vector<float> weights = floats_of(*sums_read);
    const std::vector<float> counts = floats_of(*counts_read);
    if (counts.empty() || weights.size() % counts.size())
      return damaged(name,
                     format("{} has {} sums and {} counts", quoted(matrix), weights.size(), counts.size()));
    const size_t row = weights.size() / counts.size();
    for (size_t i = 0; i < weights.size(); i++) {
      const float count = counts[i / row];
      weights[i] = count > 0 ? weights[i] / count : 1;  // an expert that no token chose
    }
    if (!usable(weights))
      return damaged(name, format("{} has a weight that is negative or not finite", quoted(matrix)));
    all.add(matrix, std::move(weights));
  }
  if (all.size() == 0) return damaged(name, "found no tensor with sums of squares (NAME.in_sum2)");
  return all;
}

}  // namespace

const std::vector<float>* Importance::find(std::string_view tensor) const {
  const auto found = of_.find(tensor);
  return found == of_.end() ? nullptr : &found->second;
}

Result<Importance> Importance::parsed(Bytes bytes, const std::string& name) {
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) {
    auto file = parse_gguf(bytes, name);
    if (!file) return file.error();
    return from_gguf(*file, name);
  }
  return OldReader(bytes, name).read();
}

Result<Importance> Importance::open(const std::string& path) {
  auto text = read_file(path, kMostBytes);
  if (!text) return text.error();
  return parsed(std::as_bytes(std::span(*text)), path);
}

}  // namespace gimbal
