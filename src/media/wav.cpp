// WAV: integers of 8 to 32 bits and floats. Compressed kinds are refused by number.
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "media/sound.h"
#include "media/sound_decoders.h"

namespace gimbal {
namespace {

constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

uint64_t little_endian(std::string_view bytes, size_t at, size_t n) {
  uint64_t v = 0;
  for (size_t i = n; i > 0; i--) v = v << 8 | uint8_t(bytes[at + i - 1]);
  return v;
}

struct WavFormat {
  uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
};

float wav_sample(const WavFormat& f, std::string_view bytes, size_t at) {
  const uint64_t raw = little_endian(bytes, at, f.bits / 8);
  if (f.kind == kFloat) {
    if (f.bits == 64) {
      double v;
      std::memcpy(&v, &raw, 8);
      return float(v);
    }
    const auto word = uint32_t(raw);
    float v;
    std::memcpy(&v, &word, 4);
    return v;
  }
  if (f.bits == 8) return (float(raw) - 128) / 128;
  const auto v = int32_t(uint32_t(raw) << (32 - f.bits));  // the sign at the top
  return float(double(v) / 2147483648.0);
}

Status read_wav_format(std::string_view chunk, WavFormat& f) {
  if (chunk.size() < 16) return damaged_sound("WAV", "its format is cut off");
  f.kind = uint32_t(little_endian(chunk, 0, 2)), f.channels = uint32_t(little_endian(chunk, 2, 2));
  f.rate = uint32_t(little_endian(chunk, 4, 4)), f.bits = uint32_t(little_endian(chunk, 14, 2));
  if (f.kind == kExtensible && chunk.size() >= 26) f.kind = uint32_t(little_endian(chunk, 24, 2));
  if (auto ok = check_sound_format("WAV", f.channels, f.rate); !ok) return ok.error();
  const bool known = f.kind == kPcm ? f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32
                                    : f.kind == kFloat && (f.bits == 32 || f.bits == 64);
  if (known) return Done{};
  return Error{Code::Unsupported, format("WAV of kind {} with {} bits cannot be read", f.kind, f.bits),
               "integers of 8 to 32 bits and floats can be read"};
}

}  // namespace

Result<StoredSound> decode_wav(std::string_view bytes) {
  WavFormat format;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const std::string_view name = bytes.substr(at, 4);
    const uint64_t n = little_endian(bytes, at + 4, 4);
    // Streams do not know the size of their data: it lasts to the end.
    const std::string_view chunk = bytes.substr(at + 8, size_t(n));
    if (name == "fmt ") {
      if (auto ok = read_wav_format(chunk, format); !ok) return ok.error();
    } else if (name == "data") {
      if (!format.rate) return damaged_sound("WAV", "its samples come before their format");
      if (chunk.size() < n && n < 0xffffff00) return damaged_sound("WAV", "it ends too early");
      const size_t sample = format.bits / 8, frame = sample * format.channels, frames = chunk.size() / frame;
      if (frames > kMaxSoundSamples) return long_sound();
      StoredSound out{int(format.rate), std::vector<float>(frames)};
      for (size_t i = 0; i < frames; i++) {
        double sum = 0;
        for (size_t c = 0; c < format.channels; c++)
          sum += double(wav_sample(format, chunk, i * frame + c * sample));
        const auto mean = float(sum / format.channels);
        if (!std::isfinite(mean) || std::abs(mean) > 1e6f)
          return damaged_sound("WAV", "a sample is not finite");
        out.samples[i] = mean;
      }
      return out;
    }
    at += 8 + size_t(n) + (n & 1);
  }
  return damaged_sound("WAV", "it has no samples");
}

}  // namespace gimbal
