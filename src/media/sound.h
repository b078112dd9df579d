// Bytes of a file to a sound as encoders of speech get it: one channel, 16,000 samples a second. The format
// is recognized by content: WAV, FLAC, and MP3 where libmpg123 is installed. Several channels become their
// mean.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

constexpr int kSoundRate = 16'000;                       // samples a second, of all sounds
constexpr uint64_t kMaxSoundBytes = uint64_t(64) << 20;  // of the encoded file
constexpr uint64_t kMaxSoundSamples = 30'000'000;        // of one channel, as stored
constexpr uint64_t kMaxSoundSeconds = 600;

struct Sound {
  std::vector<float> samples;  // -1 to 1
};

// Whether the bytes may be those of a sound: their number and their beginning. Errors: as of decode_sound().
Status check_sound_bytes(std::string_view bytes);

// Errors: Malformed for damaged sounds, Unsupported for other formats, Usage beyond a limit.
Result<Sound> decode_sound(std::string_view bytes);

}  // namespace gimbal
