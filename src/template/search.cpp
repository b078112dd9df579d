#include "template/text.h"

#include <cstdint>
#include <vector>

namespace gimbal::tmpl {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kShort = 32;  // up to here find() of the standard library is at most so much slower

// Knuth, Morris and Pratt. `in` and `what` give the byte at a place; returns the place of the first match.
template <class In, class What>
size_t first_match(size_t size, size_t length, In in, What what) {
  std::vector<uint32_t> border(length);  // longest proper prefix that is also a suffix, of what[0..i]
  for (size_t i = 1, k = 0; i < length; i++) {
    while (k > 0 && what(i) != what(k)) k = border[k - 1];
    border[i] = uint32_t(k += what(i) == what(k));
  }
  for (size_t i = 0, k = 0; i < size; i++) {
    while (k > 0 && in(i) != what(k)) k = border[k - 1];
    k += in(i) == what(k);
    if (k == length) return i + 1 - length;
  }
  return kNone;
}

}  // namespace

size_t find_text(std::string_view in, std::string_view what, size_t from) {
  if (what.size() <= kShort) return in.find(what, from);
  if (from > in.size() || what.size() > in.size() - from) return kNone;
  const size_t at = first_match(
      in.size() - from, what.size(), [&](size_t i) { return in[from + i]; },
      [&](size_t i) { return what[i]; });
  return at == kNone ? kNone : from + at;
}

size_t rfind_text(std::string_view in, std::string_view what) {
  if (what.size() <= kShort) return in.rfind(what);
  if (what.size() > in.size()) return kNone;
  // Both read backwards.
  const size_t at = first_match(
      in.size(), what.size(), [&](size_t i) { return in[in.size() - 1 - i]; },
      [&](size_t i) { return what[what.size() - 1 - i]; });
  return at == kNone ? kNone : in.size() - at - what.size();
}

}  // namespace gimbal::tmpl
