// Bytes of a file to a picture. The format is recognized by content: PNG, JPEG, WebP, GIF (of animations the
// first frame). Alpha and colour profiles are ignored, 16 bits become the upper 8, EXIF orientation is
// applied.
#pragma once
#include <string_view>

#include "base/result.h"
#include "media/picture.h"

namespace gimbal {

// Checked in the header, before memory is taken.
constexpr uint64_t kMaxPictureBytes = uint64_t(32) << 20;  // of the encoded file
constexpr uint64_t kMaxPicturePixels = 40'000'000;
constexpr int kMaxPictureSide = 65'535;

// Whether the bytes may be those of a picture: their number and their beginning. Errors: as of
// decode_picture().
Status check_picture_bytes(std::string_view bytes);

// Errors: Malformed for damaged pictures, Unsupported for other formats, Usage beyond a limit.
Result<Picture> decode_picture(std::string_view bytes, uint64_t max_pixels = kMaxPicturePixels);

}  // namespace gimbal
