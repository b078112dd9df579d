// Sounds and their spectra: against an independent float64 computation, other encoders, and hostile files.
#include "media/sound.h"

#include <cmath>

#include "base/file.h"
#include "media/golden_pictures.h"
#include "media/pieces.h"

namespace gimbal::test {
namespace {

Sound sound_in(const std::string& path) {
  auto bytes = read_file(path);
  EXPECT_TRUE(bytes) << path;
  auto sound = decode_sound(*bytes);
  EXPECT_TRUE(sound) << path << ": " << sound.error().message;
  return sound ? std::move(*sound) : Sound{};
}

PreprocessSettings ultravox(int bins) {
  PreprocessSettings s;
  s.projector = "ultravox", s.rule = PieceRule::Sound, s.mel_bins = bins, s.stack = 6;
  return s;
}

TEST(Sounds, GoldenSpectra) {
  const auto golden = read_json(golden_dir() + "/vision/ultravox.json");
  for (const auto& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto& shape = one["pieces"][0];
    const auto settings = ultravox(shape["height"].get<int>());
    const auto pieces = pieces_of(settings, sound_in(golden_picture(one["images"][0])), 0);
    ASSERT_TRUE(pieces);
    ASSERT_EQ(pieces->size(), one["pieces"].size());
    const Piece& piece = (*pieces)[0];
    EXPECT_EQ(piece.width, shape["width"].get<int>());
    EXPECT_EQ(rows_of(settings, piece), shape["rows"].get<int>());
    std::vector<float> found(piece.mel.size());
    normalised(settings, piece, found.data());
    const std::string raw = unpacked(one["pixels_f32_zlib_b64"], found.size() * 4);
    double largest = 0;
    for (size_t i = 0; i < found.size(); i++) {
      float expected;
      std::memcpy(&expected, raw.data() + 4 * i, 4);
      largest = std::max(largest, double(std::abs(expected - found[i])));
    }
    EXPECT_LT(largest, 1e-4);
  }
}

// A WAV file of one format.
std::string wav_of(uint32_t kind, uint32_t channels, uint32_t rate, uint32_t bits, const std::string& data) {
  const auto number = [](uint32_t v, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; i++, v >>= 8) out += char(v & 0xff);
    return out;
  };
  const std::string format = number(kind, 2) + number(channels, 2) + number(rate, 4) +
                             number(rate * channels * bits / 8, 4) + number(channels * bits / 8, 2) +
                             number(bits, 2);
  const std::string body =
      "WAVEfmt " + number(16, 4) + format + "data" + number(uint32_t(data.size()), 4) + data;
  return "RIFF" + number(uint32_t(body.size()), 4) + body;
}

TEST(Sounds, WavFormats) {
  const float half = 0.5f, all = -1.0f;
  std::string floats(8, '\0');
  std::memcpy(floats.data(), &half, 4), std::memcpy(floats.data() + 4, &all, 4);
  const struct {
    uint32_t kind, bits;
    std::string data;  // 0.5, -1
  } formats[] = {{1, 8, {"\xc0\x00", 2}},
                 {1, 16, {"\x00\x40\x00\x80", 4}},
                 {1, 24, {"\x00\x00\x40\x00\x00\x80", 6}},
                 {1, 32, {"\x00\x00\x00\x40\x00\x00\x00\x80", 8}},
                 {3, 32, floats}};
  for (const auto& f : formats) {
    const auto mono = decode_sound(wav_of(f.kind, 1, kSoundRate, f.bits, f.data));
    ASSERT_TRUE(mono) << mono.error().message;
    EXPECT_EQ(mono->samples, (std::vector<float>{0.5f, -1.0f})) << f.bits;
    const auto stereo = decode_sound(wav_of(f.kind, 2, kSoundRate, f.bits, f.data));
    ASSERT_TRUE(stereo);
    EXPECT_EQ(stereo->samples, (std::vector<float>{-0.25f})) << f.bits;
  }
  const auto law = decode_sound(wav_of(7, 1, 8000, 8, "abc"));
  ASSERT_FALSE(law);
  EXPECT_EQ(law.error().code, Code::Unsupported);
}

// Writers put other chunks before the samples. Behind one of odd length is a byte without meaning.
TEST(Sounds, OddWavChunksArePadded) {
  std::string wav = wav_of(1, 1, kSoundRate, 16, {"\x00\x40\x00\x80", 4});
  wav.insert(36, std::string("LIST\x03\0\0\0abc\0", 12));
  const auto sound = decode_sound(wav);
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_EQ(sound->samples, (std::vector<float>{0.5f, -1.0f}));
}

// A program that writes to a pipe says one of these in place of the size: ffmpeg, sox and arecord do.
TEST(Sounds, WavOfAStreamLastsToTheEndOfTheFile) {
  std::string wav = wav_of(1, 1, kSoundRate, 16, {"\x00\x40\x00\x80", 4});
  const size_t size = wav.size() - 8;
  for (const std::string& said : {std::string("\xff\xff\xff\xff"), std::string("\x00\xff\xff\xff", 4)}) {
    const auto sound = decode_sound(wav.replace(size, 4, said));
    ASSERT_TRUE(sound) << sound.error().message;
    EXPECT_EQ(sound->samples, (std::vector<float>{0.5f, -1.0f}));
  }
  const auto cut = decode_sound(wav.replace(size, 4, std::string("\x06\0\0\0", 4)));
  ASSERT_FALSE(cut) << "any other size is that of its samples";
  EXPECT_EQ(cut.error().code, Code::Malformed);
}

// At twice the rate every other sample is an old one.
TEST(Sounds, TheFirstAndTheLastSampleCount) {
  for (const size_t at : {0, 99}) {
    std::string data(200, '\0');
    data[2 * at + 1] = 0x40;
    const auto sound = decode_sound(wav_of(1, 1, kSoundRate / 2, 16, data));
    ASSERT_TRUE(sound);
    ASSERT_EQ(sound->samples.size(), 200u);
    for (size_t i = 0; i < 100; i++) EXPECT_NEAR(sound->samples[2 * i], i == at ? 0.5 : 0, 1e-3) << i;
  }
}

// The share of a frequency's power in a sound.
double share_of(const Sound& sound, double hz) {
  double re = 0, im = 0, power = 0;
  const size_t edge = sound.samples.size() / 4,
               n = sound.samples.size() - 2 * edge;  // without the encoder's edges
  for (size_t i = edge; i < edge + n; i++) {
    const double angle = 2 * M_PI * hz * double(i) / kSoundRate, v = double(sound.samples[i]);
    re += v * std::cos(angle), im += v * std::sin(angle), power += v * v;
  }
  return 2 * (re * re + im * im) / (double(n) * power);
}

// 12000 of 440 Hz on the left, 8000 of 1760 Hz on the right: 9/13 and 4/13 of the power of their mean.
TEST(Sounds, OtherEncodersAndRates) {
  for (const char* name : {"tones.flac", "tones.mp3"}) {
    SCOPED_TRACE(name);
    const Sound sound = sound_in(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/sounds/" + name);
    EXPECT_NEAR(double(sound.samples.size()), kSoundRate / 4, name[6] == 'f' ? 1 : 1500);
    EXPECT_NEAR(share_of(sound, 440), 9.0 / 13, 0.02);
    EXPECT_NEAR(share_of(sound, 1760), 4.0 / 13, 0.02);
    EXPECT_NEAR(share_of(sound, 3000), 0, 0.01);
    const float highest = *std::max_element(sound.samples.begin(), sound.samples.end());
    EXPECT_NEAR(highest, 10000.0 / 32768, 0.03);
  }
}

TEST(Sounds, FrequenciesAboveTheRateVanish) {
  std::string data;
  for (int i = 0; i < 12000; i++) {
    const auto v = int16_t(20000 * std::sin(2 * M_PI * 15000 * i / 48000));
    data += char(v & 0xff), data += char(v >> 8 & 0xff);
  }
  const auto sound = decode_sound(wav_of(1, 1, 48000, 16, data));
  ASSERT_TRUE(sound);
  ASSERT_EQ(sound->samples.size(), 4000u);
  for (size_t i = 200; i < 3800; i++) ASSERT_LT(std::abs(sound->samples[i]), 0.01f) << i;
}

TEST(Sounds, LongSoundsHaveSeveralPieces) {
  Sound sound;
  sound.samples.assign(size_t(kSoundRate) * 30 + 1, 0.1f);
  const auto pieces = pieces_of(ultravox(8), sound, 3);
  ASSERT_TRUE(pieces);
  ASSERT_EQ(pieces->size(), 2u);
  EXPECT_EQ((*pieces)[1].image, 3);
  EXPECT_FALSE(pieces_of(ultravox(8), Sound{}, 0));
}

TEST(Sounds, DamagedFiles) {
  for (const char* name : {"/tests/data/sounds/tones.flac", "/tests/data/sounds/tones.mp3"}) {
    const auto whole = read_file(GIMBAL_SOURCE_DIR + std::string(name));
    ASSERT_TRUE(whole);
    for (size_t n = 0; n < whole->size(); n += 1 + n / 8) {
      static_cast<void>(decode_sound(std::string_view(*whole).substr(0, n)));
      std::string changed = *whole;
      changed[n] = char(changed[n] ^ 0x81);
      static_cast<void>(decode_sound(changed));
    }
  }
  const auto flac = read_file(GIMBAL_SOURCE_DIR + std::string("/tests/data/sounds/tones.flac"));
  EXPECT_FALSE(decode_sound(std::string_view(*flac).substr(0, flac->size() / 2)));
  for (const std::string& bytes :
       {std::string(), std::string("RIFF"), std::string("RIFF\0\0\0\0WAVE", 12), std::string("fLaC"),
        std::string("OggS"), std::string("ID3"), wav_of(1, 0, 16000, 16, "ab"), wav_of(1, 1, 0, 16, "ab"),
        wav_of(1, 1, 16000, 16, ""), wav_of(3, 1, 16000, 32, {"\x00\x00\xc0\x7f", 4})}) {
    const auto sound = decode_sound(bytes);
    EXPECT_FALSE(sound);
    EXPECT_GT(sound.error().message.size(), 10u);
  }
  const auto cut = wav_of(1, 1, 16000, 16, "abcdefgh");
  EXPECT_FALSE(decode_sound(cut.substr(0, cut.size() - 2)));
}

}  // namespace
}  // namespace gimbal::test
