// hot: every logit
#include "runtime/top_logits.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/bytes.h"
#include "base/sha256.h"

namespace gimbal {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
void add(Sha256& sha, const T& value) {
  sha.add({reinterpret_cast<const char*>(&value), sizeof value});
}

}  // namespace

std::string row_digest(int index, const TopLogits& top, std::span<const float> all) {
  const size_t most = std::min(top.ids.size(), size_t(kDigestTop));
  const auto n =
      uint32_t(std::find(top.ids.begin(), top.ids.begin() + ptrdiff_t(most), -1.f) - top.ids.begin());
  Sha256 sha;
  add(sha, uint32_t(index)), add(sha, n);
  for (size_t i = 0; i < n; i++) add(sha, top.logits[i]), add(sha, int32_t(top.ids[i]));
  sha.add({reinterpret_cast<const char*>(all.data()), all.size_bytes()});
  return sha.hex();
}

std::string row_digest(int index, std::span<const float> all) {
  std::array<float, kDigestTop> logits, ids;
  size_t n = 0;
  for (size_t i = 0; i < all.size(); i++) {
    if (n == kDigestTop && !(all[i] > logits[n - 1])) continue;
    size_t at = n < kDigestTop ? n++ : n - 1;
    for (; at > 0 && all[i] > logits[at - 1]; at--) logits[at] = logits[at - 1], ids[at] = ids[at - 1];
    logits[at] = all[i], ids[at] = float(i);
  }
  return row_digest(index, TopLogits{std::span(logits).first(n), std::span(ids).first(n)},
                    index % kDigestFull == 0 ? all : std::span<const float>());
}

}  // namespace gimbal
