// Bounds-checked reading and the wording of GGUF errors.
#include "files/gguf_cursor.h"

#include "base/format.h"
#include "base/text.h"
#include "files/file_arithmetic.h"

namespace gimbal {
namespace {

constexpr std::string_view kDamaged =
    "The file is damaged, or the tool that wrote it is faulty: download it again or convert the model again.";
constexpr std::string_view kIncomplete =
    "The file is probably incomplete: compare its size with the published one and download it again.";

}  // namespace

void GgufCursor::enter(const char* kind, uint64_t number, uint64_t count) {
  kind_ = kind;
  number_ = number;
  count_ = count;
  name_ = {};
}

std::string GgufCursor::about(std::string_view field) const {
  if (!kind_) return std::string(field);
  if (name_.empty()) return format("{} of {} {} of {}", field, kind_, number_, count_);
  return format("{} of {} {}", field, kind_, quoted(name_));
}

bool GgufCursor::fail(uint64_t at, std::string_view field, std::string_view expected, std::string_view found,
                      Code code, std::string_view remedy) {
  error_ = Error{
      code, format("'{}' at byte {}: {}: expected {}, found {}", file_, at, about(field), expected, found),
      std::string(remedy.empty() && code == Code::Malformed ? kDamaged : remedy)};
  return false;
}

bool GgufCursor::fail_truncated(uint64_t at, std::string_view field, std::string_view expected,
                                std::string_view found) {
  return fail(at, field, expected, found, Code::Malformed, kIncomplete);
}

bool GgufCursor::need(uint64_t end) {
  auto head = bytes_.head(end);
  if (head) head_ = head->data();
  else error_ = head.error();
  return bool(head);
}

bool GgufCursor::take(const char* field, uint64_t size, Bytes& out) {
  const auto after = position_after(offset_, size, bytes_.size());
  if (!after)
    return fail_truncated(offset_, field, format("{} bytes", size),
                          format("{} bytes before the end of the file", remaining()));
  if (!need(*after)) return false;
  out = {head_ + offset_, size};
  offset_ = *after;
  return true;
}

bool GgufCursor::string(const char* field, std::string_view& out) {
  const uint64_t at = offset_;
  uint64_t length;
  Bytes raw;
  if (!read(field, length)) return false;
  if (length > remaining())
    return fail_truncated(at, format("length of {}", field),
                          format("at most {}, the bytes left in the file", remaining()),
                          format("{}", length));
  if (!take(field, length, raw)) return false;
  out = {reinterpret_cast<const char*>(raw.data()), raw.size()};
  return true;
}

bool GgufCursor::name(const char* field, std::string_view& out) {
  const uint64_t at = offset_;
  if (remaining() >= sizeof(uint64_t)) {
    if (!need(offset_ + sizeof(uint64_t))) return false;
    const auto length = read_le<uint64_t>(head_ + offset_);
    if (length == 0 || length > kMaxNameBytes)
      return fail(at, format("length of {}", field), format("1 to {} bytes", kMaxNameBytes),
                  format("{}", length));
  }
  if (!string(field, out)) return false;
  if (!is_utf8(out)) return fail(at + sizeof(uint64_t), field, "valid UTF-8", quoted(out));
  return true;
}

}  // namespace gimbal
