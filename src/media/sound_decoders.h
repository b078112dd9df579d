// The decoders of single formats: the mean of all channels, at the file's own rate.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct StoredSound {
  int rate = 0;  // samples a second
  std::vector<float> samples;
};

Error damaged_sound(const char* format_name, std::string_view why);
Error long_sound();
// Errors: Malformed unless there are 1 to 32 channels, and 1,000 to 768,000 samples a second.
Status check_sound_format(const char* format_name, int64_t channels, int64_t rate);

Result<StoredSound> decode_wav(std::string_view bytes);
Result<StoredSound> decode_flac(std::string_view bytes);
Result<StoredSound> decode_mp3(std::string_view bytes);

// Resampling by a windowed sinc of 32 zero crossings.
std::vector<float> at_rate(const std::vector<float>& samples, int from, int to);

}  // namespace gimbal
