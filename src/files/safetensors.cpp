#include "files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "files/array_types.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {

constexpr uint64_t kMaxJson = 100'000'000;  // the format's limit
constexpr std::string_view kTexts = "__metadata__";
constexpr const char* kGetAgain = "The file is damaged or was written by a broken program: get it again.";

struct Entry {
  std::string name, dtype;
  std::vector<uint64_t> shape, offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Takes the header apart as it is parsed: nothing is built but the entries. An object of three levels is all
// that a header may be, so any other nesting ends the parsing.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> texts;
  std::string problem;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t n) override { return refuse(format("the number {}", n)); }
  bool number_float(number_float_t, const string_t& text) override {
    return refuse(format("the number {}", text.substr(0, 40)));
  }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool number_unsigned(number_unsigned_t n) override {
    if (!in_list_) return refuse(format("the number {}", n));
    list().push_back(n);
    if (in_offsets() && list().size() > 2) return refuse("a third number");
    if (list().size() > kMaxRankRead)
      return fail(format("tensor {}: more than {} dims", gimbal::quoted(name_), kMaxRankRead));
    return true;
  }
  bool string(string_t& text) override {
    if (level_ != 2 || in_list_) return refuse(gimbal::quoted(text));
    if (name_ == kTexts) return texts.emplace_back(field_, text), true;
    if (field_ != "dtype") return refuse(gimbal::quoted(text));
    entries.back().dtype = text, entries.back().has_dtype = true;
    return true;
  }
  bool start_object(size_t) override {
    if (in_list_ || level_ == 2) return refuse("an object");
    if (++level_ == 2) fields_.clear();
    return true;
  }
  bool key(string_t& key) override {
    if (level_ == 2) {
      field_ = key;
      if (!fields_.insert(key).second)
        return fail(format("{}: {} is there twice", gimbal::quoted(name_), gimbal::quoted(key)));
      if (name_ != kTexts && key != "dtype" && key != "shape" && key != "data_offsets")
        return fail(format("tensor {}: expected dtype, shape and data_offsets, found {}",
                           gimbal::quoted(name_), gimbal::quoted(key)));
      return true;
    }
    name_ = key;
    if (!names_.insert(key).second) return fail(format("two tensors have the name {}", gimbal::quoted(key)));
    if (key != kTexts) entries.emplace_back().name = key;
    return true;
  }
  bool end_object() override {
    if (level_-- == 2 && name_ != kTexts) {
      const Entry& e = entries.back();
      const char* missing = !e.has_dtype     ? "dtype"
                            : !e.has_shape   ? "shape"
                            : !e.has_offsets ? "data_offsets"
                                             : nullptr;
      if (missing) return fail(format("tensor {} has no {}", gimbal::quoted(name_), missing));
      if (e.offsets.size() != 2)
        return fail(format("tensor {}: data_offsets: expected two numbers", gimbal::quoted(name_)));
    }
    return true;
  }
  bool start_array(size_t) override {
    if (level_ != 2 || in_list_ || name_ == kTexts || field_ == "dtype") return refuse("a list");
    in_list_ = true;
    (in_offsets() ? entries.back().has_offsets : entries.back().has_shape) = true;
    return true;
  }
  bool end_array() override { return in_list_ = false, true; }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    return fail(format("the header is no valid JSON at byte {}", 8 + at));
  }

 private:
  static constexpr size_t kMaxRankRead = kMaxStoredRank;

  bool in_offsets() const { return field_ == "data_offsets"; }
  std::vector<uint64_t>& list() { return in_offsets() ? entries.back().offsets : entries.back().shape; }
  bool fail(std::string what) {
    if (problem.empty()) problem = std::move(what);
    return false;
  }
  bool refuse(const std::string& found) {
    if (level_ == 0) return fail(format("the header: expected an object, found {}", found));
    if (level_ == 1) return fail(format("{}: expected an object, found {}", gimbal::quoted(name_), found));
    const char* expected = name_ == kTexts     ? "a string"
                           : field_ == "dtype" ? "the name of a format"
                           : in_offsets()      ? "two whole numbers from 0 on"
                                               : "whole numbers from 0 on";
    return fail(format("{}: {}: expected {}, found {}", gimbal::quoted(name_), gimbal::quoted(field_),
                       expected, found));
  }

  int level_ = 0;
  bool in_list_ = false;
  std::string name_, field_;
  std::set<std::string> names_, fields_;
};

Error bad_safetensors(const std::string& file, const std::string& what) {
  return {Code::Malformed, format("'{}': {}", escaped(file), what), kGetAgain};
}

}  // namespace

Status add_safetensors(PlainReader& reader, FileBytes& file, const std::string& path, uint32_t part,
                       TensorTable& tensors, Metadata* texts) {
  if (file.size() < sizeof(uint64_t))
    return bad_safetensors(path, format("expected a safetensors file, found {} bytes", file.size()));
  auto start = file.head(sizeof(uint64_t));
  if (!start) return start.error();
  const auto json = read_le<uint64_t>(start->data());
  if (std::memcmp(start->data(), "version ", sizeof json) == 0)  // that many bytes have never been written
    return Error{Code::Malformed,
                 format("'{}': expected a safetensors file, found a pointer of Git LFS", escaped(path)),
                 "Fetch the file itself: git lfs pull."};
  const uint64_t room = file.size() - sizeof(uint64_t);
  if (json > kMaxJson || json > room)
    return bad_safetensors(path, format("the header's size at byte 0: expected at most {}, found {}",
                                        std::min(kMaxJson, room), json));
  auto head = file.head(sizeof(uint64_t) + json);
  if (!head) return head.error();
  const std::string_view text(reinterpret_cast<const char*>(head->data()) + sizeof(uint64_t), json);
  HeaderHandler header;
  // The library accepts a byte order mark and white space in front, the format neither.
  if (text.empty() || text.front() != '{')
    return bad_safetensors(path, "the header at byte 8: expected a JSON object");
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &header)) {
    if (header.problem.empty()) header.problem = "the header is no valid JSON";
    return bad_safetensors(path, header.problem);
  }
  const uint64_t begin = sizeof(uint64_t) + json, data = file.size() - begin;
  std::vector<Entry>& all = header.entries;
  std::stable_sort(all.begin(), all.end(),
                   [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  uint64_t free = 0;
  for (Entry& e : all) {
    const auto about = [&](const std::string& what) {
      return bad_safetensors(path, format("tensor {}: {}", gimbal::quoted(e.name), what));
    };
    const auto type = dtype_of_safetensors(e.dtype);
    if (!type)
      return Error{Code::Unsupported,
                   format("'{}': tensor {}: the format {} is not known", escaped(path),
                          gimbal::quoted(e.name), gimbal::quoted(e.dtype)),
                   "Write the file with another format of numbers."};
    StoredTensor t{};
    t.type = *type, t.part = part, t.rank = uint32_t(e.shape.size());
    std::fill(std::begin(t.dim), std::end(t.dim), 1);
    for (uint32_t i = 0; i < t.rank; i++) {
      if (e.shape[i] > uint64_t(std::numeric_limits<int64_t>::max())) return about("the dims are too large");
      t.dim[t.rank - 1 - i] = int64_t(e.shape[i]);
    }
    const auto size = bytes_of_dims(*type, {t.dim, t.rank});
    if (!size) return about("the product of the dims passes 2^63");
    const uint64_t from = e.offsets[0], to = e.offsets[1];
    if (from > to || to > data)
      return about(format("data_offsets: expected a range within {} bytes, found {} to {}", data, from, to));
    if (to - from != *size)
      return about(format("data_offsets: expected {} bytes for {} {}, found {}", *size, e.dtype,
                          dims_text({t.dim, t.rank}), to - from));
    if (from != free)
      return about(format("data_offsets: expected {}, where the tensor before ends, found {}", free, from));
    free = to;
    t.offset = begin + from, t.bytes = t.stored = *size;
    t.name = reader.keep(std::move(e.name));
    if (!tensors.add(t))
      return bad_safetensors(
          path, format("tensor {} is in another file of the model, too", gimbal::quoted(t.name)));
  }
  if (free != data)
    return bad_safetensors(
        path, format("expected the end of the file after the last tensor, at byte {}, found {} more bytes",
                     begin + free, data - free));
  if (texts)
    for (auto& [key, value] : header.texts) {
      const std::string_view kept = reader.keep(std::move(key)), words = reader.keep(std::move(value));
      texts->add(kept, {MetadataType::String, words});
    }
  return Done{};
}

namespace {

Result<ModelSource> safetensors_of(FileBytes file, const std::string& path) {
  auto reader = std::make_shared<PlainReader>(escaped(path));
  TensorTable tensors;
  Metadata texts(escaped(path));
  if (auto ok = add_safetensors(*reader, reader->add(std::move(file)), path, 0, tensors, &texts); !ok)
    return ok.error();
  reader->serve(tensors);
  return ModelSource({"safetensors", 1}, std::move(texts), std::move(tensors), std::move(reader));
}

}  // namespace

Result<ModelSource> open_safetensors(const std::string& path) {
  auto file = FileBytes::open(path);
  if (!file) return file.error();
  return safetensors_of(std::move(*file), path);
}

Result<ModelSource> parse_safetensors(Bytes bytes, const std::string& name) {
  return safetensors_of(FileBytes(bytes), name);
}

Status write_safetensors(const std::string& path, const TensorTable& tensors,
                         const std::map<std::string, std::string>& texts, const ReadTensor& read) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return info(tensors[a].type).bytes > info(tensors[b].type).bytes;
  });
  Json header = Json::object();
  if (!texts.empty())
    for (const auto& [key, text] : texts) header[std::string(kTexts)][key] = text;
  uint64_t at = 0;
  for (size_t i : order) {
    const StoredTensor& t = tensors[i];
    const char* type = safetensors_name(t.type);
    if (!type || t.name == kTexts)
      return Error{
          Code::Unsupported,
          format("tensor {}: safetensors files have no format {}", gimbal::quoted(t.name), info(t.type).name),
          ""};
    Json shape = Json::array();
    for (uint32_t d = t.rank; d-- > 0;) shape.push_back(t.dim[d]);
    header[std::string(t.name)] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {at, at + t.bytes}}};
    at += t.bytes;
  }
  std::string head = dump(header);
  head.resize(align_up(head.size(), 8), ' ');
  if (head.size() > kMaxJson)
    return Error{Code::Unsupported,
                 format("a header of {} bytes is more than such files may have", head.size()), ""};
  auto file = DraftFile::create(path);
  if (!file) return file.error();
  const uint64_t size = head.size();
  if (auto ok = file->write(&size, sizeof size); !ok) return ok;
  if (auto ok = file->write(head.data(), head.size()); !ok) return ok;
  for (size_t i : order)
    if (auto ok = copy_tensor(
            tensors[i].bytes, [&](uint64_t from, void* to, size_t n) { return read(i, from, to, n); }, *file);
        !ok)
      return ok;
  if (auto ok = file->sync(); !ok) return ok;
  return file->commit();
}

}  // namespace gimbal
