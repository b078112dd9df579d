#include "model/vision/patch_positions.h"

#include <algorithm>
#include <cmath>

namespace gimbal {
namespace {

// Keys' cubic convolution. R. Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981.
double cubic_at(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  return x < 2.0 ? ((x - 5.0) * x + 8.0) * x * a - 4.0 * a : 0.0;
}
double triangle_at(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

struct Stretch {
  int64_t side;  // of the table
  int n;         // of the picture
  double scale() const { return double(side) / n; }
};

}  // namespace

int64_t table_side(PatchPositions kind, int64_t rows) {
  if (kind == PatchPositions::Axes) return rows % 2 ? 0 : rows / 2;
  int64_t side = 0;
  while (side * side < rows) side++;
  return side * side == rows ? side : 0;
}

PatchTable::PatchTable(const VisionFile& v, int lines, int columns) : v_(v) {
  if (v.positions.empty()) return;
  rows_ = int64_t(v.positions.size()) / v.width - v.has_class_row();
  const PatchPositions kind = v.arch->positions;
  side_ = table_side(kind, rows_);
  const auto shares_of = [&](int i, int n) -> std::vector<Share> {
    const Stretch s{side_, n};
    const auto inside = [&](int64_t place) { return std::clamp<int64_t>(place, 0, side_ - 1); };
    switch (kind) {
      case PatchPositions::Corners: {
        const double at = n > 1 ? double(i) * double(side_ - 1) / (n - 1) : 0;
        const auto whole = int64_t(std::floor(at));
        const double way = at - double(whole);
        return {{whole, 1 - way}, {inside(whole + 1), way}};
      }
      case PatchPositions::Linear: {
        const double at = std::max(0.0, (i + 0.5) * s.scale() - 0.5);
        const auto whole = int64_t(std::floor(at));
        const double way = at - double(whole);
        return {{inside(whole), 1 - way}, {inside(whole + 1), way}};
      }
      case PatchPositions::Cubic: {
        const double at = (i + 0.5) * s.scale() - 0.5;
        const auto whole = int64_t(std::floor(at));
        std::vector<Share> all;
        for (int64_t j = whole - 1; j <= whole + 2; j++) all.push_back({inside(j), cubic_at(at - double(j))});
        return all;
      }
      case PatchPositions::Smoothed: {
        const double centre = (i + 0.5) * s.scale(), wide = std::max(1.0, s.scale());
        std::vector<Share> all;
        double sum = 0;
        for (auto j = int64_t(std::max(0.0, centre - wide + 0.5));
             j < std::min(side_, int64_t(centre + wide + 0.5)); j++) {
          all.push_back({j, triangle_at((double(j) - centre + 0.5) / wide)});
          sum += all.back().weight;
        }
        for (Share& share : all) share.weight /= sum;
        return all;
      }
      case PatchPositions::Nearest: return {{side_ * i / n, 1}};
      default: return {{i, 1}};
    }
  };
  for (int i = 0; i < lines; i++) lines_.push_back(shares_of(i, lines));
  for (int i = 0; i < columns; i++) columns_.push_back(shares_of(i, columns));
}

void PatchTable::add(int line, int column, std::vector<double>& to) const {
  if (rows_ == 0) return;
  if (v_.arch->positions == PatchPositions::Axes) return add_row(column, 1, to), add_row(side_ + line, 1, to);
  for (const Share& y : lines_[size_t(line)])
    for (const Share& x : columns_[size_t(column)])
      if (const double weight = y.weight * x.weight; weight != 0)
        add_row(y.place * side_ + x.place, weight, to);
}

void PatchTable::add_class(std::vector<double>& to) const {
  if (rows_ > 0) add_row(v_.arch->class_last ? rows_ : -1, 1, to);
}

// Row -1: before those of patches.
void PatchTable::add_row(int64_t row, double share, std::vector<double>& to) const {
  const bool behind = v_.has_class_row() && !v_.arch->class_last;
  const float* from = v_.positions.data() + size_t(row + behind) * size_t(v_.width);
  for (size_t i = 0; i < to.size(); i++) to[i] += share * double(from[i]);
}

}  // namespace gimbal
