// The header, the metadata and the table of tensors of a GGUF file.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include "files/gguf_parser.h"
#include "tensor/format.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "files/file_arithmetic.h"

namespace gimbal {

namespace {

constexpr uint32_t kMagic = 0x46554747;         // "GGUF", read as a little-endian number
constexpr uint32_t kMagicSwapped = 0x47475546;  // written by a program that swaps every field
constexpr uint32_t kOldest = 2, kNewest = 3;
constexpr uint32_t kTl1 = 38;  // of microsoft/BitNet; its tl2 has the id of mxfp4

// The smallest size of one entry, to check counts against the rest of the file.
constexpr uint64_t kMinEntry = 8 + 1 + 4 + 1;           // key length, key, value type, value
constexpr uint64_t kMinTensor = 8 + 1 + 4 + 8 + 4 + 8;  // name length, name, rank, one dim, type, offset

MetadataValue scalar(MetadataType type, const std::byte* p) {
  switch (type) {
    case MetadataType::U8: return uint64_t(read_le<uint8_t>(p));
    case MetadataType::I8: return int64_t(read_le<int8_t>(p));
    case MetadataType::U16: return uint64_t(read_le<uint16_t>(p));
    case MetadataType::I16: return int64_t(read_le<int16_t>(p));
    case MetadataType::U32: return uint64_t(read_le<uint32_t>(p));
    case MetadataType::I32: return int64_t(read_le<int32_t>(p));
    case MetadataType::F32: return double(read_le<float>(p));
    case MetadataType::Bool: return read_le<uint8_t>(p) != 0;
    case MetadataType::U64: return read_le<uint64_t>(p);
    case MetadataType::I64: return read_le<int64_t>(p);
    case MetadataType::F64: return read_le<double>(p);
    case MetadataType::String:
    case MetadataType::Array: break;  // the caller reads these
  }
  return uint64_t(0);
}

bool is_type(uint32_t id) { return id <= uint32_t(MetadataType::F64); }

}  // namespace

Status GgufParser::run() {
  uint64_t tensors, entries;
  if (!read_header(tensors, entries)) return cursor_.error();
  for (uint64_t i = 0; i < entries; i++) {
    cursor_.enter("metadata entry", i + 1, entries);
    if (!read_entry()) return cursor_.error();
  }
  if (!find_alignment()) return cursor_.error();
  const size_t first = tensors_.size();
  for (uint64_t i = 0; i < tensors; i++) {
    cursor_.enter("tensor", i + 1, tensors);
    if (!read_tensor()) return cursor_.error();
  }
  if (!place_tensors(first) || !check_overlaps(first)) return cursor_.error();
  return Done{};
}

bool GgufParser::read_header(uint64_t& tensors, uint64_t& entries) {
  if (cursor_.remaining() == 0) return cursor_.fail_truncated(0, "header", "a GGUF file", "an empty file");
  uint32_t magic, version;
  if (!cursor_.read("magic number", magic)) return false;
  constexpr std::string_view big_endian_remedy =
      "Convert the model to little-endian, e.g. with gguf-py's gguf_convert_endian.py.";
  if (magic == kMagicSwapped)
    return cursor_.fail(0, "magic number", "'GGUF', a little-endian file", "'FUGG', a big-endian file",
                        Code::Unsupported, big_endian_remedy);
  if (magic != kMagic)
    return cursor_.fail(
        0, "magic number", "'GGUF'", quoted({reinterpret_cast<const char*>(cursor_.since(0).data()), 4}),
        Code::Malformed,
        "This is not a GGUF file. If it was downloaded, it may be an error page. For a model in safetensors "
        "give its folder, which has config.json and tokenizer.json.");
  if (!cursor_.read("version", version)) return false;
  // Big-endian files have the same four letters, so only the version reveals them.
  if (const uint32_t swapped = __builtin_bswap32(version); version > kNewest && swapped - 1 < kNewest)
    return cursor_.fail(4, "version", "2 or 3, little-endian", format("{} in a big-endian file", swapped),
                        Code::Unsupported, big_endian_remedy);
  if (version == 0) return cursor_.fail(4, "version", "2 or 3", "0");
  if (version < kOldest || version > kNewest)
    return cursor_.fail(4, "version", "2 or 3", format("{}", version), Code::Unsupported,
                        version < kOldest ? "Convert the model again with a current tool."
                                          : "The file may be newer than this gimbal: update gimbal.");
  version_ = version;
  return read_count("number of tensors", kMinTensor, tensors) &&
         read_count("number of metadata entries", kMinEntry, entries);
}

bool GgufParser::read_count(const char* field, uint64_t smallest, uint64_t& out) {
  const uint64_t at = cursor_.offset();
  if (!cursor_.read(field, out)) return false;
  const uint64_t most = most_entries(cursor_.offset(), cursor_.size(), smallest);
  if (out <= most) return true;
  return cursor_.fail_truncated(
      at, field, format("at most {}, the most that the rest of the file can hold", most), format("{}", out));
}

bool GgufParser::read_entry() {
  const uint64_t at = cursor_.offset();
  std::string_view key;
  uint32_t type;
  if (!cursor_.name("key", key)) return false;
  cursor_.named(key);
  if (metadata_.contains(key)) return cursor_.fail(at, "key", "a new key", "a duplicate");
  const uint64_t type_at = cursor_.offset();
  if (!cursor_.read("value type", type)) return false;
  if (!is_type(type)) return cursor_.fail(type_at, "value type", "a type from 0 to 12", format("{}", type));
  MetadataEntry entry{MetadataType(type), uint64_t(0)};
  if (!read_value(entry.type, entry)) return false;
  metadata_.add(key, std::move(entry));
  return true;
}

bool GgufParser::read_value(MetadataType type, MetadataEntry& out) {
  if (type == MetadataType::String) {
    std::string_view text;  // any bytes: templates and names are checked by who uses them
    if (!cursor_.string("value", text)) return false;
    out.value = text;
    return true;
  }
  if (type == MetadataType::Array) {
    MetadataArray array;
    if (!read_array(array)) return false;
    out.value = array;
    return true;
  }
  const uint64_t at = cursor_.offset();
  Bytes raw;
  if (!cursor_.take("value", encoded_bytes(type), raw)) return false;
  if (type == MetadataType::Bool && !check_bools(raw, at)) return false;
  out.value = scalar(type, raw.data());
  return true;
}

bool GgufParser::read_array(MetadataArray& out) {
  const uint64_t at = cursor_.offset();
  uint32_t type;
  if (!cursor_.read("element type", type)) return false;
  if (!is_type(type)) return cursor_.fail(at, "element type", "a type from 0 to 12", format("{}", type));
  out.type = MetadataType(type);
  if (out.type == MetadataType::Array)
    return cursor_.fail(at, "element type", "numbers, bools or strings", "arrays inside an array",
                        Code::Unsupported,
                        "No known model needs nested arrays; remove this key from the file.");
  const uint64_t fixed = encoded_bytes(out.type);
  if (!read_count("number of elements", fixed ? fixed : sizeof(uint64_t), out.count)) return false;
  const uint64_t begin = cursor_.offset();
  if (fixed) {
    if (!cursor_.take("elements", out.count * fixed, out.data)) return false;
    return out.type != MetadataType::Bool || check_bools(out.data, begin);
  }
  std::string_view element;
  for (uint64_t i = 0; i < out.count; i++)
    if (!cursor_.string("element", element)) return false;
  out.data = cursor_.since(begin);
  return true;
}

// The format calls any other byte than 0 and 1 invalid. It is a sure sign of a reader and a writer that have
// lost each other, so it is refused and not guessed at.
bool GgufParser::check_bools(Bytes data, uint64_t at) {
  for (size_t i = 0; i < data.size(); i++)
    if (const auto byte = uint8_t(data[i]); byte > 1)
      return cursor_.fail(at + i, "bool", "0 or 1", format("{}", byte));
  return true;
}

bool GgufParser::find_alignment() {
  cursor_.leave();
  auto alignment = bounded("general.alignment", uint64_t(1) << 31, alignment_);
  if (!alignment) return false;
  alignment_ = *alignment;
  if (is_power_of_two(alignment_) && alignment_ % 8 == 0) return true;
  return cursor_.fail(value_offset("general.alignment"), "general.alignment", "a power of two, 8 or more",
                      format("{}", alignment_));
}

uint64_t GgufParser::value_offset(std::string_view key) const {
  const auto& keys = metadata_.keys();
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? 0 : cursor_.offset_of(found->data() + found->size()) + sizeof(uint32_t);
}

Result<uint64_t> GgufParser::bounded(std::string_view key, uint64_t limit, uint64_t otherwise) {
  cursor_.leave();
  const MetadataEntry* entry = metadata_.find(key);
  if (!entry) return otherwise;
  const std::string expected = format("an integer from 0 to {}", limit);
  uint64_t value;
  if (const auto* u = std::get_if<uint64_t>(&entry->value)) {
    value = *u;
  } else if (const auto* i = std::get_if<int64_t>(&entry->value)) {
    if (*i < 0) {
      cursor_.fail(value_offset(key), key, expected, format("{}", *i));
      return cursor_.error();
    }
    value = uint64_t(*i);
  } else {
    cursor_.fail(value_offset(key), key, expected, format("a value of type {}", name_of(entry->type)));
    return cursor_.error();
  }
  if (value <= limit) return value;
  cursor_.fail(value_offset(key), key, expected, format("{}", value));
  return cursor_.error();
}

// ---- The table of tensors: afterwards every tensor's bytes are within the file, do not overlap, and
// have the size of its dims and type.

namespace {

constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxDim = std::numeric_limits<int32_t>::max();  // kernels count in int32

std::string dims_text(const StoredTensor& t) {
  std::string text = "[";
  for (uint32_t i = 0; i < t.rank; i++) text += format("{}{}", i ? " x " : "", t.dim[i]);
  return text + "]";
}

}  // namespace

bool GgufParser::read_tensor() {
  const uint64_t at = cursor_.offset();
  StoredTensor tensor{};
  tensor.part = part_;
  if (!cursor_.name("name", tensor.name)) return false;
  cursor_.named(tensor.name);
  if (const StoredTensor* other = tensors_.find(tensor.name)) {
    const bool same_file = other->part == part_;
    return cursor_.fail(
        at, "name", "a new tensor",
        same_file ? std::string("a duplicate") : format("one that part {} also has", other->part + 1));
  }
  if (!read_dims(tensor)) return false;

  if (!read_type(tensor)) return false;

  const uint64_t offset_at = cursor_.offset();
  if (!cursor_.read("offset", tensor.offset)) return false;
  if (tensor.offset % alignment_)
    return cursor_.fail(offset_at, "offset", format("a multiple of {}, the file's alignment", alignment_),
                        format("{}", tensor.offset));
  tensors_.add(tensor);
  return true;
}

bool GgufParser::read_type(StoredTensor& tensor) {
  const uint64_t type_at = cursor_.offset();
  uint32_t type;
  if (!cursor_.read("type", type)) return false;
  auto dtype = dtype_of_gguf(type);
  if (type == kTl1) dtype = DType::I2_S64, tensor.ternary = Ternary::TL1;
  if (dtype == DType::I2_S && choice_.i2_s != 128) {
    dtype = DType::I2_S64;
    if (choice_.i2_s == 4) tensor.ternary = Ternary::FourRows;
  }
  if (!dtype)
    return cursor_.fail(type_at, "type", "a tensor type that this build knows", format("type id {}", type),
                        Code::Unsupported,
                        "Use a file in another format (q8_0 and q4_k are safe choices), or update gimbal.");
  tensor.type = *dtype;
  if (tensor.dim[0] % info(tensor.type).block)
    return cursor_.fail(
        type_at, "type",
        format("rows of a multiple of {} values for {}", info(tensor.type).block, stored_name(tensor)),
        format("rows of {}", tensor.dim[0]));
  if (tensor.ternary != Ternary::None && tensor.dim[2] * tensor.dim[3] != 1)
    return cursor_.fail(type_at, "type", format("2 dimensions for {}", stored_name(tensor)),
                        dims_text(tensor));
  if (tensor.ternary == Ternary::FourRows && tensor.dim[1] % 4)
    return cursor_.fail(type_at, "type", "a multiple of 4 rows for i2_s with four rows to a byte",
                        format("{} rows", tensor.dim[1]));
  return true;
}

bool GgufParser::read_dims(StoredTensor& out) {
  const uint64_t rank_at = cursor_.offset();
  if (!cursor_.read("rank", out.rank)) return false;
  if (out.rank == 0 || out.rank > kMaxDims)
    return cursor_.fail(rank_at, "rank", "1 to 4 dimensions", format("{}", out.rank));
  std::fill(std::begin(out.dim), std::end(out.dim), 1);
  for (uint32_t i = 0; i < out.rank; i++) {
    const uint64_t at = cursor_.offset();
    uint64_t dim;
    if (!cursor_.read("dimension", dim)) return false;
    if (dim == 0 || dim > kMaxDim)
      return cursor_.fail(at, format("dimension {}", i), format("1 to {}", kMaxDim), format("{}", dim));
    out.dim[i] = int64_t(dim);
  }
  return true;
}

// Bytes of the tensor's data with its tail. `at` is the byte to blame when they are more than 2^63.
bool GgufParser::size_of(const StoredTensor& t, uint64_t at, uint64_t& size) {
  const auto bytes =
      tensor_bytes(t.dim, uint64_t(row_bytes(t.type, t.dim[0])), uint64_t(tensor_tail_bytes(t.type)));
  if (!bytes) return cursor_.fail(at, "dimensions", "fewer than 2^63 values and bytes in all", dims_text(t));
  size = *bytes;
  return true;
}

bool GgufParser::is_tl2(const StoredTensor& t, uint64_t room) const {
  if (t.dim[2] * t.dim[3] != 1 || t.dim[0] < 256 || t.dim[0] % info(DType::I2_S64).block) return false;
  const uint64_t region = ternary_region(Ternary::TL2, t.dim[1], t.dim[0]);
  return room < uint64_t(row_bytes(t.type, t.dim[0])) * uint64_t(t.dim[1]) && room >= region &&
         room - region < alignment_;
}

uint64_t GgufParser::offset_field(const StoredTensor& t) const {
  return cursor_.offset_of(t.name.data() + t.name.size()) + sizeof(uint32_t) + t.rank * sizeof(uint64_t) +
         sizeof(uint32_t);
}

bool GgufParser::place_tensors(size_t first) {
  const uint64_t file_size = cursor_.size();
  const uint64_t begin = align_up(cursor_.offset(), alignment_);
  std::vector<uint64_t> offsets;  // where tensors begin, and the last one ends
  for (size_t i = first; i < tensors_.size(); i++) offsets.push_back(tensors_[i].offset);
  offsets.push_back(file_size > begin ? file_size - begin : 0);
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = first; i < tensors_.size(); i++) {
    StoredTensor& tensor = tensors_[i];
    cursor_.enter("tensor", i - first + 1, tensors_.size() - first);
    cursor_.named(tensor.name);
    const uint64_t at = offset_field(tensor);
    const auto next = std::upper_bound(offsets.begin(), offsets.end(), tensor.offset);
    if (tensor.type == DType::MXFP4 && next != offsets.end() && is_tl2(tensor, *next - tensor.offset))
      tensor.type = DType::I2_S64, tensor.ternary = Ternary::TL2;
    uint64_t size;
    if (!size_of(tensor, cursor_.offset_of(tensor.name.data() + tensor.name.size()), size)) return false;
    tensor.bytes = tensor.stored = size;
    if (tensor.ternary != Ternary::None) {
      tensor.stored = ternary_region(tensor.ternary, tensor.dim[1], tensor.dim[0]);
      if (auto tiles = ternary_tiles(tensor.ternary, tensor.dim[1], tensor.dim[0], choice_))
        tensor.tiles = *tiles;
    }
    const auto range = range_in_file(begin, tensor.offset, tensor.stored, file_size);
    if (!range)
      return cursor_.fail_truncated(at, "data",
                                    format("{} bytes ({} {}) at {} + {}", tensor.stored, stored_name(tensor),
                                           dims_text(tensor), begin, tensor.offset),
                                    format("a file of {} bytes", file_size));
    tensor.offset = range->begin;
  }
  return true;
}

bool GgufParser::check_overlaps(size_t first) {
  const TensorTable& tensors = tensors_;
  std::vector<size_t> order(tensors.size() - first);
  std::iota(order.begin(), order.end(), first);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(tensors[a].offset, a) < std::pair(tensors[b].offset, b);
  });
  // No tensor is empty, so comparing neighbours is enough.
  for (size_t i = 1; i < order.size(); i++) {
    const StoredTensor &before = tensors[order[i - 1]], &after = tensors[order[i]];
    const uint64_t end = before.offset + before.stored;
    if (!overlap({before.offset, end}, {after.offset, after.offset + after.stored})) continue;
    cursor_.enter("tensor", order[i] - first + 1, order.size());
    cursor_.named(after.name);
    return cursor_.fail(offset_field(after), "data",
                        format("bytes of its own, before {} or from {} on", before.offset, end),
                        format("bytes {} to {}, shared with tensor {}", after.offset,
                               after.offset + after.stored - 1, quoted(before.name)));
  }
  return true;
}

}  // namespace gimbal
