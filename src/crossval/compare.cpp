#include "crossval/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gimbal::crossval {
namespace {

// Moved runs of one or two ops may show no error at all by chance.
constexpr double kLeastRelative = 1e-7;

struct Sizes {
  double mean = 0, largest = 0;
};
template <class A, class B>
Sizes sizes_of(std::span<const A> a, std::span<const B> b) {
  double squares = 0, largest = 0;
  for (size_t i = 0; i < a.size(); i++) {
    const double d = std::fabs(double(a[i]) - double(b[i]));
    squares += d * d;
    if (!(d <= largest)) largest = std::isnan(d) ? INFINITY : d;
  }
  const double mean = a.empty() ? 0 : std::sqrt(squares / double(a.size()));
  return {std::isnan(mean) ? INFINITY : mean, largest};
}
double mean_of(std::span<const double> a) {
  double squares = 0;
  for (double v : a) squares += v * v;
  return a.empty() ? 0 : std::sqrt(squares / double(a.size()));
}
double of(double error, double allowed) { return allowed > 0 ? error / allowed : error > 0 ? INFINITY : 0; }

}  // namespace

Rounding::Rounding(const Rows& exact, std::span<const Rows> moved) : exact_(exact) {
  std::vector<double> means, largest;  // relative to the size of the row
  for (int r = 0; r < exact.rows(); r++) {
    const double size = mean_of(exact.row(r));
    Allowed a{kLeastRelative * size, kLeastRelative * size};
    for (const Rows& m : moved) {
      const Sizes s = sizes_of(m.row(r), exact.row(r));
      a.mean = std::max(a.mean, kFactor * s.mean), a.largest = std::max(a.largest, kFactor * s.largest);
    }
    row_.push_back(a);
    if (size > 0) means.push_back(a.mean / size), largest.push_back(a.largest / size);
  }
  if (means.empty()) return;
  std::sort(means.begin(), means.end()), std::sort(largest.begin(), largest.end());
  relative_ = {means.back(), largest.back()};
  // The moved runs of a row may all be close by chance: each row is allowed at least as much as the middle
  // row.
  const size_t middle = (means.size() - 1) / 2;
  for (int r = 0; r < exact.rows(); r++) {
    const double size = mean_of(exact.row(r));
    Allowed& a = row_[size_t(r)];
    a.mean = std::max(a.mean, means[middle] * size), a.largest = std::max(a.largest, largest[middle] * size);
  }
}

double Rounding::share(int row, std::span<const float> got) const {
  const Sizes s = sizes_of(got, exact_.row(row));
  const Allowed& a = row_[size_t(row)];
  return std::max(of(s.mean, a.mean), of(s.largest, a.largest));
}

double Rounding::share_of_difference(double mean, double largest, double size) const {
  return std::max(of(mean, 2 * relative_.mean * size), of(largest, 2 * relative_.largest * size));
}

void add_row(Difference& d, int row, std::span<const float> ours, std::span<const float> theirs,
             const Rounding* rounding) {
  const Sizes s = sizes_of(ours, theirs);
  double squares = 0;
  for (size_t i = 0; i < ours.size(); i++) {
    squares += double(ours[i]) * double(ours[i]);
    d.same_bits = d.same_bits && std::bit_cast<uint32_t>(ours[i]) == std::bit_cast<uint32_t>(theirs[i]);
    const double here = std::fabs(double(ours[i]) - double(theirs[i]));
    if (!(here <= d.largest) && !(d.largest == INFINITY)) {
      d.largest = std::isnan(here) ? INFINITY : here;
      d.row = row, d.column = int(i), d.ours = ours[i], d.theirs = theirs[i];
    }
  }
  const double size = ours.empty() ? 0 : std::sqrt(squares / double(ours.size()));
  // Running means of squares over all rows, which are equally long.
  const auto mix = [&](double before, double more) {
    return std::sqrt((before * before * d.rows + more * more) / (d.rows + 1));
  };
  d.size = mix(d.size, size), d.mean = mix(d.mean, s.mean);
  d.rows++, d.width = int(ours.size());
  if (!rounding || rounding->rows() == 0) return;
  const auto most = [](std::optional<double>& to, double v) {
    if (!to || !(v <= *to)) to = v;
  };
  double share, explained;
  if (row < rounding->rows()) {
    const double mine = rounding->share(row, ours), other = rounding->share(row, theirs);
    most(d.our_share, mine), most(d.their_share, other);
    share = std::max(mine, other), explained = rounding->allowed(row);
  } else {
    share = rounding->share_of_difference(s.mean, s.largest, size),
    explained = 2 * rounding->relative() * size;
  }
  if (!d.share || !(share <= *d.share)) d.share = share, d.explained = explained;
}

}  // namespace gimbal::crossval
