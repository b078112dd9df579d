// Views against a naive map of indices: which element of the memory stands at each place.
#include "tensors/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace gimbal::test {
namespace {

// The dims, and for each place in row-major order the element of the memory.
struct IndexMap {
  std::vector<int64_t> dims, at;

  int64_t count() const { return int64_t(at.size()); }
  // The place of these indices.
  size_t place(const std::vector<int64_t>& index) const {
    size_t p = 0;
    for (size_t i = 0; i < dims.size(); i++) p = p * size_t(dims[i]) + size_t(index[i]);
    return p;
  }
  // The map of other dims, where `from` gives the indices here of indices there.
  template <class From>
  IndexMap remade(std::vector<int64_t> to, From from) const {
    IndexMap m{std::move(to), {}};
    const int64_t n = std::accumulate(m.dims.begin(), m.dims.end(), int64_t(1), std::multiplies<>());
    std::vector<int64_t> index(m.dims.size());
    for (int64_t k = 0; k < n; k++) {
      int64_t rest = k;
      for (size_t i = m.dims.size(); i-- > 0;) index[i] = rest % m.dims[i], rest /= m.dims[i];
      m.at.push_back(at[place(from(index))]);
    }
    return m;
  }
};

IndexMap map_of(const Layout& l) {
  IndexMap m{{l.dim, l.dim + l.rank}, {}};
  for (int64_t k = 0; k < l.count(); k++) {
    int64_t rest = k, at = l.offset;
    for (int i = l.rank; i-- > 0;) at += rest % l.dim[i] * l.stride[i], rest /= l.dim[i];
    m.at.push_back(at);
  }
  return m;
}

using Random = std::mt19937;
int64_t below(Random& r, int64_t n) { return int64_t(r() % uint64_t(n)); }

// One random view of both; false: the layout says that only a copy can have these dims.
bool step(Random& r, Layout& l, IndexMap& m) {
  const int rank = l.rank;
  switch (below(r, 7)) {
    case 0: {
      std::vector<int> order(static_cast<size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), r);
      std::vector<int64_t> to;
      for (int o : order) to.push_back(l.dim[o]);
      m = m.remade(to, [&](const std::vector<int64_t>& i) {
        std::vector<int64_t> from(i.size());
        for (size_t d = 0; d < i.size(); d++) from[size_t(order[d])] = i[d];
        return from;
      });
      l = permuted(l, order);
      return true;
    }
    case 1: {
      if (!rank) return true;
      const int d = int(below(r, rank));
      const int64_t size = 1 + below(r, l.dim[d]);
      const int64_t most = size > 1 ? (l.dim[d] - 1) / (size - 1) : 3;
      int64_t by = most ? 1 + below(r, most) : 1;
      const int64_t span = (size - 1) * by;
      int64_t begin = below(r, l.dim[d] - span);
      if (below(r, 2)) begin += span, by = -by;
      auto to = m.dims;
      to[size_t(d)] = size;
      m = m.remade(to, [&](std::vector<int64_t> i) {
        i[size_t(d)] = begin + i[size_t(d)] * by;
        return i;
      });
      l = narrowed(l, d, begin, size, by);
      return true;
    }
    case 2: {
      if (rank < 2) return true;
      const int d = int(below(r, rank));
      const int64_t at = below(r, l.dim[d]);
      auto to = m.dims;
      to.erase(to.begin() + d);
      m = m.remade(to, [&](std::vector<int64_t> i) {
        i.insert(i.begin() + d, at);
        return i;
      });
      l = selected(l, d, at);
      return true;
    }
    case 3: {
      if (!rank) return true;
      const int d = int(below(r, rank));
      const int64_t n = l.dim[d];
      m = m.remade(m.dims, [&](std::vector<int64_t> i) {
        i[size_t(d)] = n - 1 - i[size_t(d)];
        return i;
      });
      l = flipped(l, d);
      return true;
    }
    case 4: {
      if (!rank || rank == kMaxRank) return true;
      const int d = int(below(r, rank));
      const int64_t size = 1 + below(r, l.dim[d]), by = 1 + below(r, 2);
      auto to = m.dims;
      to[size_t(d)] = (l.dim[d] - size) / by + 1, to.push_back(size);
      m = m.remade(to, [&](std::vector<int64_t> i) {
        i[size_t(d)] = i[size_t(d)] * by + i.back();
        i.pop_back();
        return i;
      });
      l = unfolded(l, d, size, by);
      return true;
    }
    case 5: {
      if (rank == kMaxRank || l.count() > 500) return true;
      auto to = m.dims;
      for (int64_t& d : to)
        if (d == 1) d = 1 + below(r, 3);
      if (below(r, 2)) to.insert(to.begin(), 1 + below(r, 3));
      const size_t added = to.size() - m.dims.size();
      const auto before = m.dims;
      m = m.remade(to, [&](const std::vector<int64_t>& i) {
        std::vector<int64_t> from(i.begin() + int64_t(added), i.end());
        for (size_t d = 0; d < from.size(); d++)
          if (before[d] == 1) from[d] = 0;
        return from;
      });
      const auto b = broadcast(l, to);
      EXPECT_TRUE(b);
      if (b) l = *b;
      return true;
    }
    default: {  // other dims of the same elements
      std::vector<int64_t> to;
      int64_t left = l.count();
      while (left > 1 && int(to.size()) < kMaxRank - 1) {
        int64_t d = 1 + below(r, left);
        while (left % d) d--;
        to.push_back(d), left /= d;
      }
      if (left > 1 || below(r, 3) == 0) to.push_back(left);
      const auto view = reshaped(l, to);
      if (!view) return false;
      m.dims = to;
      l = *view;
      return true;
    }
  }
}

TEST(Layout, RandomChainsOfViewsAreThoseOfAnIndexMap) {
  int copies = 0;
  for (uint32_t seed = 0; seed < 10000; seed++) {
    Random r(seed);
    std::vector<int64_t> dims;
    for (int64_t i = below(r, 5); i-- > 0;) dims.push_back(1 + below(r, 5));
    Layout l = dense_layout(dims);
    IndexMap m = map_of(l);
    for (int i = 0; i < 6 && m.count() < 3000; i++) {
      if (!step(r, l, m)) {
        copies++;
        break;
      }
      const IndexMap got = map_of(l);
      ASSERT_EQ(got.dims, m.dims) << "seed " << seed;
      ASSERT_EQ(got.at, m.at) << "seed " << seed;
      const auto [least, most] = std::minmax_element(m.at.begin(), m.at.end());
      ASSERT_EQ(reach(l).begin, *least) << "seed " << seed;
      ASSERT_EQ(reach(l).end, *most + 1) << "seed " << seed;
      std::vector<int64_t> sorted = m.at;
      std::sort(sorted.begin(), sorted.end());
      const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
      if (twice) { ASSERT_TRUE(overlaps_itself(l)) << "seed " << seed; }
      bool in_order = true;
      for (size_t k = 1; k < m.at.size(); k++) in_order = in_order && m.at[k] == m.at[k - 1] + 1;
      ASSERT_EQ(l.dense(), in_order) << "seed " << seed;
    }
  }
  EXPECT_GT(copies, 500) << "some need copies";
  EXPECT_LT(copies, 9000);
}

TEST(Layout, DimsThatNoMemoryHolds) {
  const int64_t negative[] = {2, -1}, huge[] = {INT64_MAX / 2, 4}, nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                none[] = {0, INT64_MAX / 32};
  EXPECT_TRUE(check_dims(negative));
  EXPECT_TRUE(check_dims(huge));
  EXPECT_TRUE(check_dims(nine));
  EXPECT_FALSE(check_dims(none));
}

TEST(Layout, DenseOnesAndSuchWithoutElements) {
  const int64_t dims[] = {3, 1, 4};
  EXPECT_TRUE(dense_layout(dims).dense());
  EXPECT_TRUE(narrowed(dense_layout(dims), 0, 1, 2, 1).dense());
  EXPECT_FALSE(narrowed(dense_layout(dims), 2, 0, 3, 1).dense());
  EXPECT_TRUE(narrowed(dense_layout(dims), 2, 0, 0, 1).dense()) << "nothing lies anywhere";
  EXPECT_FALSE(overlaps_itself(dense_layout(dims)));
}

}  // namespace
}  // namespace gimbal::test
