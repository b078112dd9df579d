// Two results for the same tokens side by side, and the share of their difference that rounding explains.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "crossval/reference_run.h"

namespace gimbal::crossval {

// A result is within rounding if no row is farther from the reference than kFactor times the farthest moved
// run: by the root mean square of the row's errors, and by the largest of them. A row is allowed at least, in
// proportion, the allowance of the middle row.
inline constexpr double kFactor = 3;
inline constexpr int kMovedRuns = 8;

// What rounding may do to the rows of one value.
class Rounding {
 public:
  Rounding(const Rows& exact, std::span<const Rows> moved);

  int rows() const { return int(row_.size()); }
  // The error of a row as a multiple of the allowed one.
  double share(int row, std::span<const float> got) const;
  double allowed(int row) const { return row_[size_t(row)].mean; }  // root mean square
  // The same for the difference of two results, both with rounding errors: of a row without a reference, of
  // this size (root mean square). By the largest relative allowance of all rows.
  double share_of_difference(double mean, double largest, double size) const;
  double relative() const { return relative_.mean; }
  // The largest difference of two numbers of a row of this size.
  double allowed_difference(double size) const { return 2 * relative_.largest * size; }

 private:
  struct Allowed {
    double mean = 0, largest = 0;
  };
  const Rows& exact_;
  std::vector<Allowed> row_;
  Allowed relative_;  // to the root mean square of a row
};

// The comparison of one value, such as the output of a layer.
struct Difference {
  std::string what;  // "layer 3", "logits"
  int rows = 0, width = 0;
  bool same_bits = true;
  double size = 0;               // root mean square of our numbers
  double mean = 0, largest = 0;  // of the differences: root mean square, absolute value
  int row = 0, column = 0;       // of the largest
  float ours = 0, theirs = 0;    // there
  // As multiples of what rounding explains; absent without a reference.
  std::optional<double> our_share = {}, their_share = {}, share = {};
  std::optional<double> explained = {};  // root mean square, of the row with the largest share

  bool explained_by_rounding() const { return same_bits || (share && *share <= 1); }
};

// Adds a row of both to the comparison. `rounding`: of this value; may be nullptr. `row`: its number in the
// text; beyond the rows of the reference the relative allowance counts.
void add_row(Difference&, int row, std::span<const float> ours, std::span<const float> theirs,
             const Rounding*);

}  // namespace gimbal::crossval
