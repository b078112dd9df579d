// The position vectors of the patches of a picture, from the table of a projector file.
#pragma once
#include <vector>

#include "model/vision/vision_file.h"

namespace gimbal {

class PatchTable {
 public:
  // Of a picture with so many lines and columns of patches.
  PatchTable(const VisionFile&, int lines, int columns);

  // Adds the vector of a patch, [width], to `to`.
  void add(int line, int column, std::vector<double>& to) const;
  // Likewise, of the class row.
  void add_class(std::vector<double>& to) const;

 private:
  struct Share {
    int64_t place;
    double weight;
  };
  using Shares = std::vector<std::vector<Share>>;  // by line or column of the picture
  void add_row(int64_t row, double share, std::vector<double>& to) const;

  const VisionFile& v_;
  int64_t rows_ = 0, side_ = 0;  // of patches; the square's side, or the length of a list
  Shares lines_, columns_;
};

// The side of the square of places, or the length of each list; 0: the number of rows does not fit.
int64_t table_side(PatchPositions, int64_t rows);

}  // namespace gimbal
