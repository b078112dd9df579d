#include "media/sound.h"

#include "base/format.h"
#include "base/text.h"
#include "media/sound_decoders.h"

namespace gimbal {
namespace {

constexpr const char* kSoundFormats = "WAV, FLAC and MP3 can be read";

bool is_wav(std::string_view bytes) {
  return bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WAVE";
}
bool is_flac(std::string_view bytes) { return bytes.starts_with("fLaC"); }
// An ID3 tag, or the sync word of a frame of layer III.
bool is_mp3(std::string_view bytes) {
  return bytes.starts_with("ID3") ||
         (bytes.size() > 3 && uint8_t(bytes[0]) == 0xff && (uint8_t(bytes[1]) & 0xe6) == 0xe2);
}

}  // namespace

Error damaged_sound(const char* format_name, std::string_view why) {
  return Error{Code::Malformed, format("the {} sound is damaged: {}", format_name, escaped(why)),
               "save it again with a program that can play it"};
}

Error long_sound() {
  return Error{Code::Usage,
               format("the sound is too long: at most {} seconds and {} million samples can be read",
                      kMaxSoundSeconds, kMaxSoundSamples / 1'000'000),
               "cut it into parts"};
}

Status check_sound_format(const char* format_name, int64_t channels, int64_t rate) {
  if (channels < 1 || channels > 32)
    return damaged_sound(format_name, format("it has {} channels", channels));
  if (rate < 1000 || rate > 768'000)
    return damaged_sound(format_name, format("it has {} samples a second", rate));
  return Done{};
}

Status check_sound_bytes(std::string_view bytes) {
  if (bytes.empty()) return Error{Code::Malformed, "the sound is empty"};
  if (bytes.size() > kMaxSoundBytes)
    return Error{Code::Usage, format("the sound has {} bytes; the limit is {}", bytes.size(), kMaxSoundBytes),
                 "cut it into parts, or save it as FLAC or MP3"};
  if (is_wav(bytes) || is_flac(bytes) || is_mp3(bytes)) return Done{};
  return Error{
      Code::Unsupported,
      bytes.starts_with("OggS") ? "sounds in Ogg cannot be read" : "the bytes are not those of a sound",
      kSoundFormats};
}

Result<Sound> decode_sound(std::string_view bytes) {
  if (auto ok = check_sound_bytes(bytes); !ok) return ok.error();
  auto stored = is_wav(bytes) ? decode_wav(bytes) : is_flac(bytes) ? decode_flac(bytes) : decode_mp3(bytes);
  if (!stored) return stored.error();
  if (stored->samples.empty()) return Error{Code::Malformed, "the sound has no samples"};
  if (stored->samples.size() > kMaxSoundSeconds * uint64_t(stored->rate)) return long_sound();
  return Sound{at_rate(stored->samples, stored->rate, kSoundRate)};
}

}  // namespace gimbal
