// hot: each name of a symbol is read here.
#include "inspection/binary_source.h"

#include <algorithm>
#include <cstring>

namespace gimbal {
namespace {

constexpr size_t kBlock = 16384, kSlots = 512;  // 8 MB of cache

}  // namespace

Result<BinarySource> BinarySource::open(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return file.error();
  BinarySource s;
  s.file_ = std::move(*file);
  s.size_ = s.file_.size();
  s.slots_.resize(kSlots);
  return s;
}

const std::byte* BinarySource::block(uint64_t number) {
  Slot& slot = slots_[number % kSlots];
  if (slot.number == number) return slot.bytes.get();
  if (!slot.bytes) slot.bytes = std::make_unique<std::byte[]>(kBlock);
  slot.number = number;
  const uint64_t at = number * kBlock;
  if (!read_uncached(at, slot.bytes.get(), size_t(std::min<uint64_t>(kBlock, size_ - at)))) {
    slot.number = UINT64_MAX;
    return nullptr;
  }
  return slot.bytes.get();
}

bool BinarySource::read_uncached(uint64_t at, void* to, size_t bytes) {
  if (at > size_ || bytes > size_ - at || failure_) return std::memset(to, 0, bytes), false;
  if (slots_.empty()) return bytes && std::memcpy(to, memory_.data() + at, bytes), true;
  if (auto s = file_.read(at, to, bytes); !s) {
    failure_ = s.error();
    return std::memset(to, 0, bytes), false;
  }
  return true;
}

bool BinarySource::read(uint64_t at, void* to, size_t bytes) {
  if (slots_.empty()) return read_uncached(at, to, bytes);
  if (at > size_ || bytes > size_ - at) return std::memset(to, 0, bytes), false;
  auto* out = static_cast<std::byte*>(to);
  while (bytes) {
    const std::byte* b = block(at / kBlock);
    if (!b) return std::memset(out, 0, bytes), false;
    const size_t from = size_t(at % kBlock), n = std::min(bytes, kBlock - from);
    std::memcpy(out, b + from, n);
    out += n, at += n, bytes -= n;
  }
  return true;
}

bool ByteView::has_table(uint64_t at, uint64_t count, uint64_t each) const {
  const auto bytes = checked_mul(count, each);
  return bytes && has(at, *bytes);
}

ByteView ByteView::part(uint64_t at, uint64_t bytes) const {
  ByteView v = *this;
  at = std::min(at, size_);
  v.base_ = base_ + at;
  v.size_ = std::min(bytes, size_ - at);
  return v;
}

ByteView ByteView::swapped(bool big_endian) const {
  ByteView v = *this;
  v.big_endian_ = big_endian;
  return v;
}

bool ByteView::copy(uint64_t at, void* to, size_t bytes) const {
  if (!has(at, bytes)) return std::memset(to, 0, bytes), false;
  return source_->read(base_ + at, to, bytes);
}

bool ByteView::copy_uncached(uint64_t at, void* to, size_t bytes) const {
  if (!has(at, bytes)) return std::memset(to, 0, bytes), false;
  return source_->read_uncached(base_ + at, to, bytes);
}

uint64_t ByteView::number(uint64_t at, size_t bytes) const {
  uint8_t raw[8] = {};
  copy(at, raw, bytes);
  uint64_t v = 0;
  for (size_t i = 0; i < bytes; i++) v |= uint64_t(raw[i]) << 8 * (big_endian_ ? bytes - 1 - i : i);
  return v;
}

std::string ByteView::text(uint64_t at) const {
  std::string s;
  char piece[128];
  while (at < size_ && s.size() < kLongestText) {
    const size_t n = size_t(std::min<uint64_t>(sizeof piece, size_ - at));
    if (!copy(at, piece, n)) break;
    const void* end = std::memchr(piece, 0, n);
    s.append(piece, end ? size_t(static_cast<const char*>(end) - piece) : n);
    if (end) break;
    at += n;
  }
  if (s.size() > kLongestText) s.resize(kLongestText);
  return s;
}

std::string ByteView::field(uint64_t at, size_t width) const {
  std::string s(width, '\0');
  copy(at, s.data(), width);
  s.resize(s.find_last_not_of('\0') + 1);
  return s;
}

bool ByteView::starts_with(uint64_t at, std::string_view expected) const {
  char found[64];
  return expected.size() <= sizeof found && copy(at, found, expected.size()) &&
         std::memcmp(found, expected.data(), expected.size()) == 0;
}

}  // namespace gimbal
