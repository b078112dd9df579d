// without media: sounds are refused.
#include "media/sound.h"

#include "base/result.h"

namespace gimbal {

Status check_sound_bytes(std::string_view) { return absent_feature_error("a sound", "media"); }

Result<Sound> decode_sound(std::string_view) { return absent_feature_error("a sound", "media"); }

}  // namespace gimbal
