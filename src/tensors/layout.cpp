#include "tensors/layout.h"

#include <algorithm>
#include <vector>

#include "base/format.h"

namespace gimbal {

int64_t Layout::count() const {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dim[i];
  return n;
}

bool Layout::dense() const {
  if (count() == 0) return true;
  int64_t want = 1;
  for (int i = rank; i-- > 0;) {
    if (dim[i] != 1 && stride[i] != want) return false;
    want *= dim[i];
  }
  return true;
}

Layout dense_layout(std::span<const int64_t> dims) {
  Layout l;
  l.rank = int(dims.size());
  int64_t stride = 1;
  for (int i = l.rank; i-- > 0;) {
    l.dim[i] = dims[size_t(i)], l.stride[i] = stride;
    stride *= l.dim[i];
  }
  return l;
}

std::optional<std::string> check_dims(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) return format("{} dimensions; a tensor has at most {}", dims.size(), kMaxRank);
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d < 0) return format("the dimension {} is negative", d);
    if (__builtin_mul_overflow(n, std::max<int64_t>(1, d), &n) || n > INT64_MAX / 16)
      return "more elements than any memory holds";
  }
  return std::nullopt;
}

Layout permuted(const Layout& l, std::span<const int> order) {
  Layout to = l;
  for (int i = 0; i < l.rank; i++)
    to.dim[i] = l.dim[order[size_t(i)]], to.stride[i] = l.stride[order[size_t(i)]];
  return to;
}

Layout narrowed(const Layout& l, int dim, int64_t begin, int64_t size, int64_t step) {
  Layout to = l;
  if (size > 0) to.offset += begin * l.stride[dim];
  to.dim[dim] = size, to.stride[dim] = l.stride[dim] * step;
  return to;
}

Layout selected(const Layout& l, int dim, int64_t at) {
  Layout to = l;
  to.offset += at * l.stride[dim];
  for (int i = dim; i + 1 < l.rank; i++) to.dim[i] = l.dim[i + 1], to.stride[i] = l.stride[i + 1];
  to.rank--;
  to.dim[to.rank] = to.stride[to.rank] = 0;
  return to;
}

Layout flipped(const Layout& l, int dim) {
  Layout to = l;
  if (l.dim[dim] > 0) to.offset += (l.dim[dim] - 1) * l.stride[dim];
  to.stride[dim] = -l.stride[dim];
  return to;
}

Layout unfolded(const Layout& l, int dim, int64_t size, int64_t step) {
  Layout to = l;
  to.dim[dim] = (l.dim[dim] - size) / step + 1, to.stride[dim] = l.stride[dim] * step;
  to.dim[l.rank] = size, to.stride[l.rank] = l.stride[dim];
  to.rank++;
  return to;
}

std::optional<Layout> broadcast(const Layout& l, std::span<const int64_t> dims) {
  const int added = int(dims.size()) - l.rank;
  if (added < 0) return std::nullopt;
  Layout to;
  to.rank = int(dims.size()), to.offset = l.offset;
  for (int i = 0; i < to.rank; i++) {
    to.dim[i] = dims[size_t(i)];
    if (i < added) continue;
    const int64_t d = l.dim[i - added];
    if (d != to.dim[i] && d != 1) return std::nullopt;
    to.stride[i] = d == to.dim[i] ? l.stride[i - added] : 0;
  }
  return to;
}

// The dims of `l` without those of 1, and neighbours merged that lie as one; then each of the new dims must
// divide one of these.
std::optional<Layout> reshaped(const Layout& l, std::span<const int64_t> dims) {
  Layout to = dense_layout(dims);
  to.offset = l.offset;
  if (l.count() <= 1 || l.dense()) return to;
  int64_t dim[kMaxRank], stride[kMaxRank];
  int n = 0;
  for (int i = 0; i < l.rank; i++) {
    if (l.dim[i] == 1) continue;
    if (n && stride[n - 1] == l.stride[i] * l.dim[i]) dim[n - 1] *= l.dim[i], stride[n - 1] = l.stride[i];
    else dim[n] = l.dim[i], stride[n] = l.stride[i], n++;
  }
  int64_t left = 1, next = 0;  // of the merged dim that is being divided, and the stride of the remainder
  for (int i = to.rank; i-- > 0;) {
    if (to.dim[i] == 1) continue;
    if (left == 1) n--, left = dim[n], next = stride[n];
    if (left % to.dim[i]) return std::nullopt;
    to.stride[i] = next, next *= to.dim[i], left /= to.dim[i];
  }
  return to;
}

std::optional<Layout> broadcast_dims(const Layout& a, const Layout& b) {
  Layout to;
  to.rank = std::max(a.rank, b.rank);
  for (int i = 1; i <= to.rank; i++) {
    const int64_t x = i <= a.rank ? a.dim[a.rank - i] : 1, y = i <= b.rank ? b.dim[b.rank - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    to.dim[to.rank - i] = x == 1 ? y : x;
  }
  return to;
}

MemoryRange reach(const Layout& l) {
  MemoryRange r{l.offset, l.offset + 1};
  for (int i = 0; i < l.rank; i++) {
    const int64_t span = (l.dim[i] - 1) * l.stride[i];
    (span < 0 ? r.begin : r.end) += span;
  }
  return r;
}

// Sorted by stride, each dim must step over all that the smaller ones reach. That is sufficient: unusual
// layouts without a shared element, such as strides 2 and 3, count as overlapping, too.
bool overlaps_itself(const Layout& l) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, dim
  for (int i = 0; i < l.rank; i++)
    if (l.dim[i] > 1) steps.emplace_back(std::abs(l.stride[i]), l.dim[i]);
  std::sort(steps.begin(), steps.end());
  int64_t covered = 0;
  for (const auto& [stride, dim] : steps) {
    if (stride <= covered) return l.count() > 0;
    covered += stride * (dim - 1);
  }
  return false;
}

std::string to_string(std::span<const int64_t> dims) {
  std::string text;
  for (int64_t d : dims) text += (text.empty() ? "" : ", ") + std::to_string(d);
  return "[" + text + "]";
}

}  // namespace gimbal
