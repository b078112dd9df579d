// The patches of a piece of a picture as the rows of an encoder: their order, their positions, and the order
// of the rows that the encoder makes of them.
#pragma once
#include <vector>

#include "media/pieces.h"
#include "model/vision/vision_file.h"

namespace gimbal {

// The sizes of a piece in an encoder.
struct PatchGrid {
  int lines = 0, columns = 0;  // of rows for the text model
  int patches = 0;             // with the class row
  int rows = 0;                // for the text model, with the rows behind lines
};
// Errors: Malformed for sizes below one row; Usage for more patches than `kMostPatches`.
Result<PatchGrid> patch_grid(const VisionFile&, const Piece&);

// Rows in an order in which all that is joined lies side by side: the class row; then windows, in them
// squares of neighbours, in them patches, each line by line.
struct PatchRows {
  PatchGrid grid;
  std::vector<float> pixels, added;  // of `rows`
  std::vector<PatchRow> rows;
  std::vector<int> result;  // by row of the encoder's output: its place, line by line
};
// Errors: as patch_grid().
Result<PatchRows> patch_rows(const VisionFile&, const Piece&);

}  // namespace gimbal
