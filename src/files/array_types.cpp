#include "files/array_types.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/bytes.h"
#include "base/format.h"

namespace gimbal {
namespace {

// Names of a format here, in safetensors files, and in npy files; null: they do not have it.
struct Names {
  const char *here, *safetensors, *numpy;
};
constexpr Names kNames[] = {
    {"bool", "BOOL", "b1"},
    {"u8", "U8", "u1"},
    {"i8", "I8", "i1"},
    {"u16", "U16", "u2"},
    {"i16", "I16", "i2"},
    {"u32", "U32", "u4"},
    {"i32", "I32", "i4"},
    {"u64", "U64", "u8"},
    {"i64", "I64", "i8"},
    {"f16", "F16", "f2"},
    {"bf16", "BF16", nullptr},
    {"f32", "F32", "f4"},
    {"f64", "F64", "f8"},
    {"f8_e4m3", "F8_E4M3", nullptr},
    {"f8_e5m2", "F8_E5M2", nullptr},
};

constexpr size_t kCopiedBytes = 1 << 20;  // bytes of a tensor in memory while it is copied

}  // namespace

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const Names& n : kNames)
    if (name == n.safetensors) return dtype_named(n.here);
  return std::nullopt;
}
std::optional<DType> dtype_of_numpy(std::string_view letters) {
  for (const Names& n : kNames)
    if (n.numpy && letters == n.numpy) return dtype_named(n.here);
  return std::nullopt;
}
const char* safetensors_name(DType type) {
  for (const Names& n : kNames)
    if (dtype_named(n.here) == type) return n.safetensors;
  return nullptr;
}
const char* numpy_name(DType type) {
  for (const Names& n : kNames)
    if (dtype_named(n.here) == type) return n.numpy;
  return nullptr;
}

std::optional<uint64_t> bytes_of_dims(DType type, std::span<const int64_t> dims) {
  // A dim of 0 makes the array empty, whatever the others are; their product is bounded all the same.
  uint64_t values = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d == 0) {
      empty = true;
      continue;
    }
    const auto more = checked_mul(values, uint64_t(d));
    if (!more) return std::nullopt;
    values = *more;
  }
  const auto bytes = checked_mul(values, info(type).bytes);
  constexpr auto most = uint64_t(std::numeric_limits<int64_t>::max());
  if (!bytes || *bytes > most || values > most) return std::nullopt;
  return empty ? 0 : *bytes;
}

std::string dims_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = dims.size(); i-- > 0;) text += format("{}{}", dims[i], i ? " x " : "");
  return text + "]";
}

Status copy_tensor(uint64_t bytes, const std::function<Status(uint64_t offset, void* to, size_t n)>& read,
                   DraftFile& to) {
  std::vector<std::byte> piece(size_t(std::min<uint64_t>(bytes, kCopiedBytes)));
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(size_t(std::min<uint64_t>(piece.size(), bytes - at)));
    if (auto ok = read(at, piece.data(), piece.size()); !ok) return ok;
    if (auto ok = to.write(piece.data(), piece.size()); !ok) return ok;
  }
  return Done{};
}

}  // namespace gimbal
