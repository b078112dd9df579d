#include "quantize/importance_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/gguf.h"
#include "files/gguf_writer.h"

namespace gimbal {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts", kTextsKey = "imatrix.datasets",
                           kWindowsKey = "imatrix.chunk_count", kWindowKey = "imatrix.chunk_size";
constexpr uint64_t kMostBytes = uint64_t(1) << 30;

Error damaged(const std::string& name, std::string what) {
  return {Code::Malformed, format("{}: {}", escaped(name), what),
          "an importance matrix is expected, as `gimbal imatrix` and `llama-imatrix` write it"};
}

bool usable(const InputSums& sums) {
  for (double square : sums.squares)
    if (!(square >= 0 && square - square == 0)) return false;
  for (double rows : sums.rows)
    if (!(rows >= 0 && rows <= 3e38)) return false;
  for (float w : sums.means())
    if (!(w >= 0 && w <= 3e38f)) return false;
  return true;
}

// The binary form: a number of entries; of each the length of its name, the name, the number of windows, the
// number of values, and their means times windows. Then the number of all windows, and the text's name.
class OldReader {
 public:
  OldReader(Bytes bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<ImportanceSums> read() {
    ImportanceSums all;
    all.counted = false;
    const auto entries = number();
    if (!entries || *entries < 1) return cut("a positive number of entries");
    for (int32_t i = 0; i < *entries; i++) {
      const auto length = number();
      if (!length || *length < 1 || uint64_t(*length) > bytes_.size() - at_)
        return cut("the length of a name");
      std::string name = text(size_t(*length));
      const auto windows = number(), values = number();
      if (!windows || !values || *values < 1 || uint64_t(*values) * 4 > bytes_.size() - at_)
        return cut("the number of values of " + quoted(name));
      std::vector<float> means(static_cast<size_t>(*values));
      std::memcpy(means.data(), bytes_.data() + at_, means.size() * sizeof(float));
      at_ += means.size() * sizeof(float);
      InputSums sums{{means.begin(), means.end()}, {double(std::max(*windows, 1))}};
      if (!usable(sums))
        return damaged(name_, format("{} has a weight that is negative or not finite", quoted(name)));
      all.add(std::move(name), std::move(sums));
    }
    // Files of the first releases end here.
    if (const auto windows = number(); windows && *windows > 0) all.windows = uint32_t(*windows);
    if (const auto length = number(); length && *length > 0 && uint64_t(*length) <= bytes_.size() - at_)
      all.texts.push_back(text(size_t(*length)));
    return all;
  }

 private:
  std::optional<int32_t> number() {
    if (bytes_.size() - at_ < 4) return std::nullopt;
    const auto value = read_le<int32_t>(bytes_.data() + at_);
    at_ += 4;
    return value;
  }
  std::string text(size_t length) {
    at_ += length;
    return {reinterpret_cast<const char*>(bytes_.data()) + at_ - length, length};
  }
  Error cut(const std::string& what) const {
    return damaged(name_, format("expected {} at byte {} of {}", what, at_, bytes_.size()));
  }

  Bytes bytes_;
  const std::string& name_;
  size_t at_ = 0;
};

std::vector<double> numbers_of(const std::vector<std::byte>& bytes) {
  std::vector<float> all(bytes.size() / sizeof(float));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(float));
  return {all.begin(), all.end()};
}

// Two tensors for each matrix: sums of squares, a row for each expert, and the number of rows of each.
Result<ImportanceSums> from_gguf(const ModelSource& file, const std::string& name) {
  ImportanceSums all;
  for (const StoredTensor& t : file.tensors()) {
    if (!t.name.ends_with(kSums)) continue;
    const std::string matrix(t.name.substr(0, t.name.size() - kSums.size()));
    const StoredTensor* counted = file.tensors().find(matrix + std::string(kCounts));
    if (!counted || t.type != DType::F32 || counted->type != DType::F32)
      return damaged(name, format("{} has no sums and counts in f32", quoted(matrix)));
    const auto squares = file.read(t), rows = file.read(*counted);
    if (!squares) return squares.error();
    if (!rows) return rows.error();
    InputSums sums{numbers_of(*squares), numbers_of(*rows)};
    if (sums.rows.empty() || sums.squares.size() % sums.rows.size())
      return damaged(name, format("{} has {} sums and {} counts", quoted(matrix), sums.squares.size(),
                                  sums.rows.size()));
    if (!usable(sums))
      return damaged(name, format("{} has a weight that is negative or not finite", quoted(matrix)));
    all.add(matrix, std::move(sums));
  }
  if (all.tensors().empty()) return damaged(name, "found no tensor with sums of squares (NAME.in_sum2)");
  const auto number = [&](std::string_view key) {
    return uint32_t(std::min<uint64_t>(file.metadata().unsigned_integer(key).value_or(0), UINT32_MAX));
  };
  all.windows = number(kWindowsKey), all.window = number(kWindowKey);
  if (const auto texts = file.metadata().array(kTextsKey))
    for (std::string_view text : texts->strings()) all.texts.emplace_back(text);
  return all;
}

template <class T>
void put_raw(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::vector<float> InputSums::means() const {
  std::vector<float> all;
  all.reserve(squares.size());
  for (size_t i = 0; i < squares.size(); i++) {
    const double n = rows[i / columns()];
    all.push_back(n > 0 ? float(squares[i] / n) : 1.0f);  // 1: an expert that no token chose
  }
  return all;
}

InputSums& ImportanceSums::of(std::string_view tensor, size_t columns, size_t matrices) {
  if (const auto found = of_.find(tensor); found != of_.end()) return found->second;
  return of_[std::string(tensor)] = {std::vector<double>(columns * matrices), std::vector<double>(matrices)};
}

Status ImportanceSums::add(const ImportanceSums& other, const std::string& name) {
  if (!other.counted)
    return Error{
        Code::Usage,
        format("{} has the older form, which does not say how many tokens its means are of", escaped(name)),
        "give an importance matrix in the GGUF form"};
  for (const auto& [tensor, sums] : other.of_) {
    InputSums& to = of(tensor, sums.columns(), sums.rows.size());
    if (to.squares.size() != sums.squares.size() || to.rows.size() != sums.rows.size())
      return damaged(name, format("{} has {} sums and {} counts, expected {} and {}", quoted(tensor),
                                  sums.squares.size(), sums.rows.size(), to.squares.size(), to.rows.size()));
    for (size_t i = 0; i < sums.squares.size(); i++) to.squares[i] += sums.squares[i];
    for (size_t i = 0; i < sums.rows.size(); i++) to.rows[i] += sums.rows[i];
  }
  for (const std::string& text : other.texts) add_text(text);
  windows += other.windows;
  if (window == 0) window = other.window;
  return Done{};
}

void ImportanceSums::add_text(const std::string& name) {
  if (std::find(texts.begin(), texts.end(), name) == texts.end()) texts.push_back(name);
}

Status ImportanceSums::check_made_for(const ModelSource& model) const {
  size_t known = 0;
  for (const auto& [name, sums] : of_) {
    const StoredTensor* t = model.tensors().find(name);
    if (!t) continue;
    known++;
    const auto matrices = uint64_t(t->dim[2] * t->dim[3]), inputs = uint64_t(t->dim[0]) * matrices;
    if (sums.rows.size() != matrices || sums.squares.size() != inputs)
      return Error{
          Code::Malformed,
          format("{}: the importance matrix has {} sums and {} counts for tensor {}, expected {} and {}",
                 model.path(), sums.squares.size(), sums.rows.size(), quoted(name), inputs, matrices),
          "it was made for another model"};
  }
  if (known || of_.empty()) return Done{};
  return Error{Code::Malformed,
               format("{}: the importance matrix has no tensor of this model, but {}", model.path(),
                      quoted(of_.begin()->first)),
               "it was made for another model"};
}

Status ImportanceSums::write_gguf(const std::string& path) const {
  GgufWriter file;
  file.string("general.type", "imatrix");
  file.strings(kTextsKey, texts);
  file.u32(kWindowsKey, windows);
  file.u32(kWindowKey, window);
  std::vector<std::vector<float>> data;
  for (const auto& [name, sums] : of_) {
    const int64_t columns = int64_t(sums.columns()), matrices = int64_t(sums.rows.size());
    file.tensor(name + std::string(kSums), DType::F32, std::vector<int64_t>{columns, matrices});
    file.tensor(name + std::string(kCounts), DType::F32, std::vector<int64_t>{1, matrices});
    data.emplace_back(sums.squares.begin(), sums.squares.end());
    data.emplace_back(sums.rows.begin(), sums.rows.end());
  }
  return file.write_file(path, [&](size_t i, uint64_t offset, void* to, size_t bytes) -> Status {
    std::memcpy(to, reinterpret_cast<const char*>(data[i].data()) + offset, bytes);
    return Done{};
  });
}

Status ImportanceSums::write_old(const std::string& path) const {
  std::string out;
  put_raw(out, int32_t(of_.size()));
  for (const auto& [name, sums] : of_) {
    const double most = *std::max_element(sums.rows.begin(), sums.rows.end());
    // Readers divide by this number, which must not be 0.
    const auto calls = int32_t(std::max(1.0, std::ceil(most / std::max(1u, window))));
    put_raw(out, int32_t(name.size()));
    out += name;
    put_raw(out, calls);
    put_raw(out, int32_t(sums.squares.size()));
    for (float mean : sums.means()) put_raw(out, mean * float(calls));
  }
  const std::string text = texts.empty() ? "" : texts.back();
  put_raw(out, int32_t(windows));
  put_raw(out, int32_t(text.size()));
  out += text;
  return replace_file(path, out);
}

Result<ImportanceSums> ImportanceSums::parsed(Bytes bytes, const std::string& name) {
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) {
    auto file = parse_gguf(bytes, name);
    if (!file) return file.error();
    return from_gguf(*file, name);
  }
  return OldReader(bytes, name).read();
}

Result<ImportanceSums> ImportanceSums::open(const std::string& path) {
  auto text = read_file(path, kMostBytes);
  if (!text) return text.error();
  return parsed(std::as_bytes(std::span(*text)), path);
}

}  // namespace gimbal
