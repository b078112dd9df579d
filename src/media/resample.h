// Resampling of pictures: bit for bit that of Pillow 11.3 (libImaging/Resample.c), which models were made
// with.
#pragma once
#include <array>

#include "media/picture.h"

namespace gimbal {

enum class ResampleFilter : uint8_t { Bilinear, Bicubic, Lanczos };

// Each direction whose size changes, first the rows, then the columns; values are rounded to 8 bits between.
// All sizes are at least 1.
Picture resampled(const Picture&, int width, int height, ResampleFilter);

// Scaled to fit, in the middle of a picture of one colour.
Picture padded(const Picture&, int width, int height, ResampleFilter, std::array<uint8_t, 3> colour);

// The part that begins at (x, y); it lies inside the picture.
Picture cut_out(const Picture&, int x, int y, int width, int height);

}  // namespace gimbal
