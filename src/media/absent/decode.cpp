// without media: pictures are refused.
#include "media/picture.h"

#include "base/result.h"

namespace gimbal {

Status check_picture_bytes(std::string_view) { return absent_feature_error("a picture", "media"); }

Result<Picture> decode_picture(std::string_view, uint64_t) {
  return absent_feature_error("a picture", "media");
}

}  // namespace gimbal
