// Little-endian reads, overflow-checked sizes and alignment: the arithmetic that hostile files try to break.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gimbal {

using Bytes = std::span<const std::byte>;

// Reads a trivially copyable T from unaligned little-endian memory. Every target of gimbal is little-endian.
template <class T>
T read_le(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// Rounds up to a multiple of `to` (any positive number). Does not check for overflow.
constexpr uint64_t align_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
constexpr bool is_power_of_two(uint64_t n) { return n && !(n & (n - 1)); }

// "1.50 GB", "12.0 MB", "512 B": decimal units, three digits.
std::string human_bytes(uint64_t n);

// The number in such a text: "500M", "1.5GB", "2 G", "6GiB" (units of 1024), or bytes. nullopt: none, or 0.
std::optional<uint64_t> bytes_named(std::string_view text);

}  // namespace gimbal
