// Pictures: decoded from the bytes of a file, turned upright, resampled.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // [height][width][3]
};

// Bytes of a file to a picture. The format is recognized by content: PNG, JPEG, WebP, GIF (of animations the
// first frame). Alpha and colour profiles are ignored, 16 bits become the upper 8, EXIF orientation is
// applied.

// Checked in the header, before memory is taken.
constexpr uint64_t kMaxPictureBytes = uint64_t(32) << 20;  // of the encoded file
constexpr uint64_t kMaxPicturePixels = 40'000'000;
constexpr int kMaxPictureSide = 65'535;

// Whether the bytes may be those of a picture: their number and their beginning. Errors: as of
// decode_picture().
Status check_picture_bytes(std::string_view bytes);

// Errors: Malformed for damaged pictures, Unsupported for other formats, Usage beyond a limit.
Result<Picture> decode_picture(std::string_view bytes, uint64_t max_pixels = kMaxPicturePixels);

// The orientation in EXIF data, and turning a picture upright.

// The value 1 to 8 of the tag 0x112 in a TIFF structure, as EXIF has it. 1 (upright) if it is absent or
// damaged.
int exif_orientation(std::string_view tiff);

// The picture as a viewer shows it: mirrored, turned, or both. Of 1 and of unknown values: unchanged.
Picture upright(Picture, int orientation);

// Resampling of pictures: bit for bit that of Pillow 11.3 (libImaging/Resample.c), which models were made
// with.
enum class ResampleFilter : uint8_t { Bilinear, Bicubic, Lanczos };

// Each direction whose size changes, first the rows, then the columns; values are rounded to 8 bits between.
// All sizes are at least 1.
Picture resampled(const Picture&, int width, int height, ResampleFilter);

// Scaled to fit, in the middle of a picture of one colour.
Picture padded(const Picture&, int width, int height, ResampleFilter, std::array<uint8_t, 3> colour);

// The part that begins at (x, y); it lies inside the picture.
Picture cut_out(const Picture&, int x, int y, int width, int height);

}  // namespace gimbal
