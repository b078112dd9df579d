// The orientation in EXIF data, and turning a picture upright.
#pragma once
#include <string_view>

#include "media/picture.h"

namespace gimbal {

// The value 1 to 8 of the tag 0x112 in a TIFF structure, as EXIF has it. 1 (upright) if it is absent or
// damaged.
int exif_orientation(std::string_view tiff);

// The picture as a viewer shows it: mirrored, turned, or both. Of 1 and of unknown values: unchanged.
Picture upright(Picture, int orientation);

}  // namespace gimbal
