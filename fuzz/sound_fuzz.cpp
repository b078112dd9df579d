// libFuzzer over sounds (WAV, FLAC, MP3): whatever the bytes are, there is an error that says something, or
// finite samples and their spectrum.
#include <cmath>

#include "media/pieces.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  const auto sound = decode_sound({reinterpret_cast<const char*>(data), size});
  if (!sound) {
    require(sound.error().message.size() > 10);
    return 0;
  }
  require(!sound->samples.empty());
  for (const float v : sound->samples) require(std::isfinite(v));
  if (sound->samples.size() > size_t(kSoundRate) * 30) return 0;  // time
  PreprocessSettings s;
  s.projector = "ultravox", s.rule = PieceRule::Sound, s.mel_bins = 8;
  const auto pieces = pieces_of(s, *sound, 0);
  require(pieces && pieces->size() == 1);
  for (const float v : (*pieces)[0].mel) require(std::isfinite(v));
  return 0;
}
