// The decoders of single formats. Each checks the size in the header by `check_picture_size` before it takes
// memory for pixels, and returns the picture as stored with its EXIF orientation.
#pragma once
#include <string_view>

#include "base/result.h"
#include "media/picture.h"

namespace gimbal {

struct StoredPicture {
  Picture picture;
  int orientation = 1;
};

// Errors: Malformed if a side is 0; Usage beyond a limit of picture.h.
Status check_picture_size(uint64_t width, uint64_t height, uint64_t max_pixels);
// Code::Malformed: "the PNG picture is damaged: why".
Error damaged_picture(const char* format_name, std::string_view why);

Result<StoredPicture> decode_png(std::string_view bytes, uint64_t max_pixels);
Result<StoredPicture> decode_jpeg(std::string_view bytes, uint64_t max_pixels);
Result<StoredPicture> decode_webp(std::string_view bytes, uint64_t max_pixels);
Result<StoredPicture> decode_gif(std::string_view bytes, uint64_t max_pixels);

}  // namespace gimbal
