// Asking an opened GGUF file: typed metadata, arrays and tensors. Every accessor is total.
#include "files/gguf.h"

#include <algorithm>

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

namespace gimbal {
namespace {

template <class T, class Out>
void append_all(Bytes data, uint64_t count, std::vector<Out>& out) {
  count = std::min<uint64_t>(count, data.size() / sizeof(T));
  out.reserve(count);
  for (uint64_t i = 0; i < count; i++) out.push_back(Out(read_le<T>(data.data() + i * sizeof(T))));
}

}  // namespace

const char* name_of(GgufType type) {
  switch (type) {
    case GgufType::U8: return "u8";
    case GgufType::I8: return "i8";
    case GgufType::U16: return "u16";
    case GgufType::I16: return "i16";
    case GgufType::U32: return "u32";
    case GgufType::I32: return "i32";
    case GgufType::F32: return "f32";
    case GgufType::Bool: return "bool";
    case GgufType::String: return "string";
    case GgufType::Array: return "array";
    case GgufType::U64: return "u64";
    case GgufType::I64: return "i64";
    case GgufType::F64: return "f64";
  }
  return "unknown";
}

std::vector<std::string_view> GgufArray::strings() const {
  std::vector<std::string_view> out;
  if (type != GgufType::String) return out;
  out.reserve(std::min<uint64_t>(count, data.size() / sizeof(uint64_t)));
  // The parser walked these already; the bounds are kept all the same, so that this is total by itself.
  for (size_t at = 0; out.size() < count && data.size() - at >= sizeof(uint64_t);) {
    const auto length = read_le<uint64_t>(data.data() + at);
    at += sizeof(uint64_t);
    if (length > data.size() - at) break;
    out.emplace_back(reinterpret_cast<const char*>(data.data() + at), length);
    at += length;
  }
  return out;
}

std::vector<int64_t> GgufArray::integers() const {
  std::vector<int64_t> out;
  switch (type) {
    case GgufType::U8:
    case GgufType::Bool: append_all<uint8_t>(data, count, out); break;
    case GgufType::I8: append_all<int8_t>(data, count, out); break;
    case GgufType::U16: append_all<uint16_t>(data, count, out); break;
    case GgufType::I16: append_all<int16_t>(data, count, out); break;
    case GgufType::U32: append_all<uint32_t>(data, count, out); break;
    case GgufType::I32: append_all<int32_t>(data, count, out); break;
    case GgufType::U64:  // above 2^63 these come out negative, as everywhere in two's complement
    case GgufType::I64: append_all<int64_t>(data, count, out); break;
    case GgufType::F32:
    case GgufType::F64:
    case GgufType::String:
    case GgufType::Array: break;
  }
  return out;
}

std::vector<float> GgufArray::floats() const {
  std::vector<float> out;
  if (type == GgufType::F32) append_all<float>(data, count, out);
  if (type == GgufType::F64) append_all<double>(data, count, out);
  return out;
}

GgufArray GgufArray::first(uint64_t n) const {
  GgufArray some = *this;
  some.count = std::min(count, n);
  return some;
}

uint64_t Gguf::file_bytes() const {
  uint64_t sum = 0;
  for (const GgufBytes& file : files_) sum += file.size();
  return sum;
}

Gguf::Identity Gguf::identity() const {
  Hash headers;
  int64_t last = 0;
  for (const GgufBytes& file : files_) {
    headers.add(file.size()).add(uint64_t(file.modified())).add(hash_of(file.loaded()));
    last = std::max(last, file.modified());
  }
  return {file_bytes(), headers.value(), last};
}

const GgufEntry* Gguf::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> Gguf::unsigned_integer(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<uint64_t>(&entry->value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&entry->value); value && *value >= 0) return uint64_t(*value);
  return std::nullopt;
}

std::optional<double> Gguf::number(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<uint64_t>(&entry->value)) return double(*value);
  if (const auto* value = std::get_if<int64_t>(&entry->value)) return double(*value);
  if (const auto* value = std::get_if<double>(&entry->value)) return *value;
  return std::nullopt;
}

std::optional<bool> Gguf::boolean(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (const auto* value = entry ? std::get_if<bool>(&entry->value) : nullptr) return *value;
  return std::nullopt;
}

std::optional<std::string_view> Gguf::string(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (const auto* value = entry ? std::get_if<std::string_view>(&entry->value) : nullptr) return *value;
  return std::nullopt;
}

const GgufArray* Gguf::array(std::string_view key) const {
  const GgufEntry* entry = find(key);
  return entry ? std::get_if<GgufArray>(&entry->value) : nullptr;
}

const GgufTensor* Gguf::tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Status Gguf::read(const GgufTensor& tensor, uint64_t offset, void* to, size_t bytes) const {
  if (offset > tensor.bytes || bytes > tensor.bytes - offset)
    return Error{Code::Failed,
                 format("bytes {} to {} are not inside tensor {} of {} bytes", offset, offset + bytes,
                        quoted(tensor.name), tensor.bytes),
                 ""};
  if (tensor.ternary != Ternary::None) return read_relaid(tensor, offset, static_cast<std::byte*>(to), bytes);
  return files_[tensor.part].read(tensor.offset + offset, to, bytes);
}

// Rows as blocks of i2_s64, and behind them the scale.
Status Gguf::read_relaid(const GgufTensor& t, uint64_t offset, std::byte* to, size_t bytes) const {
  if (auto ok = ternary_tiles(t.ternary, t.dim[1], t.dim[0], choice_); !ok) return ok.error();
  struct Source {
    const GgufBytes& file;
    uint64_t begin;
  } source{files_[t.part], t.offset};
  const auto read = +[](const void* from, uint64_t at, void* into, size_t n) {
    const auto& s = *static_cast<const Source*>(from);
    return s.file.read(s.begin + at, into, n);
  };
  const auto row_size = uint64_t(row_bytes(t.type, t.dim[0])), tail_at = row_size * uint64_t(t.dim[1]);
  if (offset < tail_at && bytes) {
    const auto end = std::min(offset + bytes, tail_at);
    const uint64_t first = offset / row_size, last = (end + row_size - 1) / row_size;
    std::vector<uint8_t> codes(size_t(last - first) * size_t(t.dim[0]));
    if (auto ok =
            read_ternary_rows(t.ternary, t.tiles, read, &source, int64_t(first), int64_t(last), codes.data());
        !ok) {
      Error e = ok.error();
      e.message = format("{}: tensor {}: {}", path_, quoted(t.name), e.message);
      return e;
    }
    for (uint64_t at = offset; at < end; at++) {  // four values, 16 apart
      const uint8_t* four = &codes[size_t((at - first * row_size) / 16 * 64 + at % 16)];
      *to++ = std::byte(four[0] << 6 | four[16] << 4 | four[32] << 2 | four[48]);
    }
    bytes -= size_t(end - offset), offset = end;
  }
  const uint64_t scale = align_up(ternary_bytes(t.ternary, t.dim[1], t.dim[0]), uint64_t(32));
  return bytes ? read(&source, scale + (offset - tail_at), to, bytes) : Status(Done{});
}

Status Gguf::readable() const {
  for (const GgufTensor& t : tensors_) {
    if (t.ternary == Ternary::None || t.tiles.tile_rows) continue;
    Error e = ternary_tiles(t.ternary, t.dim[1], t.dim[0], choice_).error();
    e.message = format("{}: tensor {}: {}", path_, quoted(t.name), e.message);
    return e;
  }
  return Done{};
}

const char* stored_name(const GgufTensor& t) {
  switch (t.ternary) {
    case Ternary::TL1: return "tl1";
    case Ternary::TL2: return "tl2";
    case Ternary::FourRows: return "i2_s";
    case Ternary::None: break;
  }
  return t.type == DType::I2_S64 ? "i2_s" : info(t.type).name;
}

Result<std::vector<std::byte>> Gguf::read(const GgufTensor& tensor) const {
  std::vector<std::byte> all(tensor.bytes);
  if (auto ok = read(tensor, 0, all.data(), all.size()); !ok) return ok.error();
  return all;
}

Status Gguf::join(Gguf other, const Joined& as) {
  const auto first = uint32_t(files_.size());
  for (GgufBytes& file : other.files_) files_.push_back(std::move(file));
  for (GgufTensor t : other.tensors_) {
    joined_names_.push_back(std::string(t.name) + as.suffix);
    t.name = joined_names_.back(), t.part += first;
    if (!tensor_index_.emplace(t.name, tensors_.size()).second)
      return Error{Code::Malformed, format("{}: there is a tensor {} already", other.path_, quoted(t.name)),
                   ""};
    tensors_.push_back(t);
  }
  joined_.push_back(as);
  return Done{};
}

bool Gguf::is(const std::string& path) const {
  return std::any_of(files_.begin(), files_.end(), [&](const GgufBytes& f) { return f.is(path); });
}

}  // namespace gimbal
