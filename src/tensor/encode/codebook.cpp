// hot: Builds the lists of neighbours: by the distance of levels, the lower index first on ties.
#include "tensor/encode/codebook.h"

#include <algorithm>
#include <numeric>

#include "tensor/quant/values.h"

namespace gimbal::encoding {
namespace {

// `place`: the value of each level, for distances.
template <int values, int points>
Codebook built(const uint16_t (&grid)[points], const int (&place)[values == 8 ? 3 : 8], int near) {
  Codebook book;
  book.values = values, book.levels = values == 8 ? 3 : 8, book.near = near;
  const int bits = values == 8 ? 2 : 3, in_half = values / 2;
  book.halves = 1;
  for (int k = 0; k < in_half; k++) book.halves *= book.levels;
  const auto half = [&](int point, int first) {
    int number = 0;
    for (int k = in_half - 1; k >= 0; k--)
      number = number * book.levels + (point >> (bits * (first + k)) & ((1 << bits) - 1));
    return uint8_t(number);
  };
  for (uint16_t point : grid) book.low.push_back(half(point, 0)), book.high.push_back(half(point, in_half));
  // Distances of halves.
  std::vector<int> distance(size_t(book.halves) * size_t(book.halves));
  for (int a = 0; a < book.halves; a++)
    for (int b = 0; b < book.halves; b++) {
      int sum = 0;
      for (int k = 0, p = a, q = b; k < in_half; k++, p /= book.levels, q /= book.levels) {
        const int apart = place[p % book.levels] - place[q % book.levels];
        sum += apart * apart;
      }
      distance[size_t(a * book.halves + b)] = sum;
    }
  book.neighbours.resize(size_t(book.halves) * size_t(book.halves) * size_t(near));
  std::vector<uint32_t> order(points);
  uint16_t* out = book.neighbours.data();
  for (int high = 0; high < book.halves; high++)
    for (int low = 0; low < book.halves; low++, out += near) {
      for (int p = 0; p < points; p++)
        order[size_t(p)] = uint32_t(distance[size_t(low * book.halves + book.low[size_t(p)])] +
                                    distance[size_t(high * book.halves + book.high[size_t(p)])])
                               << 11 |
                           uint32_t(p);
      std::partial_sort(order.begin(), order.begin() + near, order.end());
      for (int k = 0; k < near; k++) out[k] = uint16_t(order[size_t(k)] & 2047);
    }
  return book;
}

constexpr int kTrits[] = {0, 1, 2}, kMagnitudes2[] = {8, 25, 43},
              kMagnitudes3[] = {4, 12, 20, 28, 36, 44, 52, 62},
              kOddMagnitudes[] = {1, 3, 5, 7, 9, 11, 13, 15};

}  // namespace

const Codebook& codebook_of_iq1() {
  static const Codebook book = built<8>(quant_iq1_grid, kTrits, 12);
  return book;
}
const Codebook& codebook_of_iq2_xxs() {
  static const Codebook book = built<8>(quant_iq2_xxs_grid, kMagnitudes2, 24);
  return book;
}
const Codebook& codebook_of_iq2_xs() {
  static const Codebook book = built<8>(quant_iq2_xs_grid, kMagnitudes2, 24);
  return book;
}
const Codebook& codebook_of_iq2_s() {
  static const Codebook book = built<8>(quant_iq2_s_grid, kMagnitudes2, 24);
  return book;
}
const Codebook& codebook_of_iq3_xxs() {
  static const Codebook book = built<4>(quant_iq3_xxs_grid, kMagnitudes3, 24);
  return book;
}
const Codebook& codebook_of_iq3_s() {
  static const Codebook book = built<4>(quant_iq3_s_grid, kOddMagnitudes, 48);
  return book;
}

}  // namespace gimbal::encoding
