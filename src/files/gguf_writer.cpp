#include "files/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/gguf.h"
#include "files/gguf_cursor.h"
#include "tensor/format.h"

namespace gimbal {
namespace {

constexpr uint32_t kVersion = 3;
constexpr size_t kCopied = 1 << 20;  // bytes of weights in memory

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& to, std::string_view text) {
  put(to, uint64_t(text.size()));
  to += text;
}

// Appends an integer of `bytes` bytes, least significant first: the machine's order (base/bytes.h).
void put_integer(std::string& to, uint64_t value, uint64_t bytes) {
  to.append(reinterpret_cast<const char*>(&value), size_t(bytes));
}

}  // namespace

void GgufWriter::refuse(std::string why) {
  if (!error_) error_ = Error{Code::Unsupported, std::move(why), ""};
}

void GgufWriter::check_name(const char* kind, std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || !is_utf8(name))
    refuse(format("the {} {} has {} bytes: expected 1 to {} bytes of UTF-8", kind,
                  quoted(name.substr(0, 100)), name.size(), kMaxNameBytes));
}

GgufWriter& GgufWriter::add(std::string_view key, const MetadataEntry& entry) {
  check_name("key", key);
  keys_.emplace_back(key);
  put_text(metadata_, key);
  put(metadata_, uint32_t(entry.type));
  const uint64_t bytes = encoded_bytes(entry.type);
  if (const auto* v = std::get_if<uint64_t>(&entry.value)) put_integer(metadata_, *v, bytes);
  else if (const auto* v = std::get_if<int64_t>(&entry.value)) put_integer(metadata_, uint64_t(*v), bytes);
  else if (const auto* v = std::get_if<bool>(&entry.value)) put(metadata_, uint8_t(*v));
  else if (const auto* v = std::get_if<std::string_view>(&entry.value)) put_text(metadata_, *v);
  else if (const auto* v = std::get_if<double>(&entry.value))
    entry.type == MetadataType::F32 ? put(metadata_, float(*v)) : put(metadata_, *v);
  else if (const auto* v = std::get_if<MetadataArray>(&entry.value)) {
    put(metadata_, uint32_t(v->type));
    put(metadata_, v->count);
    raw(v->data.data(), v->data.size());
  }
  if (key != "general.alignment") return *this;
  const auto* alignment = std::get_if<uint64_t>(&entry.value);
  if (!alignment || !std::has_single_bit(*alignment) || *alignment < 8 || *alignment > uint64_t(1) << 31)
    refuse("general.alignment must be a power of two from 8 to 2^31");
  else alignment_ = *alignment;
  return *this;
}

GgufWriter& GgufWriter::add(const Metadata& all) {
  for (std::string_view key : all.keys()) add(key, *all.find(key));
  return *this;
}

GgufWriter& GgufWriter::strings(std::string_view key, std::span<const std::string> values) {
  std::string encoded;
  for (const std::string& v : values) put_text(encoded, v);
  return add(key, {MetadataType::Array,
                   MetadataArray{MetadataType::String, values.size(), std::as_bytes(std::span(encoded))}});
}

size_t GgufWriter::tensor(std::string_view name, DType type, std::span<const int64_t> dims) {
  check_name("name of a tensor", name);
  const DTypeInfo& t = info(type);
  if (t.gguf == kNotInFiles) refuse(format("tensor {}: GGUF files have no format {}", quoted(name), t.name));
  if (dims.empty() || dims.size() > 4 ||
      std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 1; }))
    refuse(format("tensor {}: expected 1 to 4 dimensions of at least 1", quoted(name)));
  else if (dims[0] % t.block)
    refuse(format("tensor {}: expected rows of a multiple of {} values for {}, found rows of {}",
                  quoted(name), t.block, t.name, dims[0]));
  uint64_t bytes = dims.empty() ? 0 : uint64_t(row_bytes(type, dims[0]));
  for (size_t i = 1; i < dims.size(); i++) bytes *= uint64_t(dims[i]);
  tensors_.push_back(
      {std::string(name), type, {dims.begin(), dims.end()}, bytes + uint64_t(tensor_tail_bytes(type))});
  return tensors_.size() - 1;
}

Status GgufWriter::write(const Read& read, const Sink& sink) const {
  if (error_) return *error_;
  std::set<std::string_view> names;
  for (const std::string& key : keys_)
    if (!names.insert(key).second)
      return Error{Code::Unsupported, format("duplicate key {}", quoted(key)), ""};
  names.clear();
  std::string head = "GGUF";
  put(head, kVersion);
  put(head, uint64_t(tensors_.size()));
  put(head, uint64_t(keys_.size()));
  head += metadata_;
  uint64_t offset = 0;
  for (const Tensor& t : tensors_) {
    if (!names.insert(t.name).second)
      return Error{Code::Unsupported, format("duplicate tensor {}", quoted(t.name)), ""};
    put_text(head, t.name);
    put(head, uint32_t(t.dims.size()));
    for (int64_t d : t.dims) put(head, uint64_t(d));
    put(head, uint32_t(info(t.type).gguf));
    put(head, offset);
    offset = align_up(offset + t.bytes, alignment_);
  }
  if (!tensors_.empty()) head.resize(align_up(head.size(), alignment_));
  if (auto ok = sink(head.data(), head.size()); !ok) return ok;
  std::vector<std::byte> piece;
  for (size_t i = 0; i < tensors_.size(); i++) {
    const uint64_t bytes = tensors_[i].bytes, end = align_up(bytes, alignment_);
    for (uint64_t at = 0; at < end; at += piece.size()) {
      piece.assign(size_t(std::min<uint64_t>(end - at, kCopied)), std::byte(0));
      const size_t here = size_t(std::min<uint64_t>(piece.size(), bytes - std::min(at, bytes)));
      if (auto ok = here ? read(i, at, piece.data(), here) : Status(Done{}); !ok) return ok;
      if (auto ok = sink(piece.data(), piece.size()); !ok) return ok;
    }
  }
  return Done{};
}

Status GgufWriter::write_file(const std::string& path, const Read& read) const {
  auto file = DraftFile::create(path);
  if (!file) return file.error();
  if (auto ok = write(read, [&](const void* data, size_t n) { return file->write(data, n); }); !ok) return ok;
  if (auto ok = file->sync(); !ok) return ok;
  return file->commit();
}

std::vector<GgufWriter> writers_of_parts(size_t parts, size_t tensors) {
  std::vector<GgufWriter> all(parts);
  if (parts > 1)
    for (size_t i = 0; i < parts; i++) {
      all[i].add("split.no", {MetadataType::U16, uint64_t(i)});
      all[i].add("split.count", {MetadataType::U16, uint64_t(parts)});
      all[i].i32("split.tensors.count", int32_t(tensors));
    }
  return all;
}

std::vector<std::string> paths_of_parts(const std::string& path, size_t parts) {
  if (parts == 1) return {path};
  SplitName name;
  if (const auto given = split_name(path)) name.stem = given->stem;
  else name.stem = path.ends_with(".gguf") ? path.substr(0, path.size() - 5) : path;
  name.count = uint32_t(parts);
  std::vector<std::string> all;
  for (uint32_t i = 1; i <= parts; i++) all.push_back(name.path(i));
  return all;
}

}  // namespace gimbal
