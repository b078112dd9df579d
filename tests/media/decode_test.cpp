// Pictures against what Pillow 11.3 makes of them, and hostile ones.
#include "media/picture.h"

#include <zlib.h>

#include <cstdlib>

#include "base/file.h"
#include "media/golden_pictures.h"

namespace gimbal::test {
namespace {

Result<Picture> decoded_file(const std::string& name) {
  auto bytes = read_file(golden_picture(name));
  EXPECT_TRUE(bytes) << bytes.error().message;
  return decode_picture(*bytes);
}

bool recognized(const std::string& kind) { return kind != "refuse"; }

TEST(Decode, GoldenPictures) {
  int compared = 0;
  for (const auto& golden : read_json(golden_dir() + "/vision/decoding.json")) {
    const std::string file = golden["file"], kind = golden["kind"];
    if (!recognized(kind) || file == "plain.bmp") continue;
    SCOPED_TRACE(file);
    const auto picture = decoded_file(file);
    ASSERT_TRUE(picture) << picture.error().message;
    ASSERT_EQ(picture->width, golden["width"].get<int>());
    ASSERT_EQ(picture->height, golden["height"].get<int>());
    const std::string expected = unpacked(golden["rgb_zlib_b64"], picture->rgb.size());
    int largest = 0;
    int64_t sum = 0;
    for (size_t i = 0; i < expected.size(); i++) {
      const int distance = std::abs(int(picture->rgb[i]) - int(uint8_t(expected[i])));
      largest = std::max(largest, distance), sum += distance;
    }
    // Decoders of JPEG may round differently; those of the other formats may not.
    const bool exact = kind.find("jpeg") == std::string::npos;
    EXPECT_LE(largest, exact ? 0 : 3);
    EXPECT_LE(double(sum), exact ? 0 : 0.5 * double(expected.size()));
    compared++;
  }
  EXPECT_GE(compared, 24);
}

// TIFF 6.0 with one field, Exif 2.3's orientation, in both orders of bytes.
std::string tiff_of(bool big, uint32_t value) {
  const auto number = [&](uint32_t v, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; i++) out += char(v >> 8 * (big ? n - 1 - i : i) & 0xff);
    return out;
  };
  return (big ? "MM" : "II") + number(42, 2) + number(8, 4) + number(1, 2) + number(0x112, 2) + number(3, 2) +
         number(1, 4) + number(value, 2) + number(0, 2) + number(0, 4);
}

TEST(Decode, OrientationsFromOneToEight) {
  for (const bool big : {false, true})
    for (uint32_t value = 0; value < 11; value++) {
      const bool valid = value >= 1 && value <= 8;
      EXPECT_EQ(exif_orientation(tiff_of(big, value)), valid ? int(value) : 1) << value;
    }
}

// What is no such TIFF says nothing: another number than 42, cut short, or a field that is no short number.
TEST(Decode, OrientationsOfWhatIsNoTiff) {
  for (const bool big : {false, true}) {
    const std::string whole = tiff_of(big, 6);
    std::string other = whole, field = whole, far = whole;
    other[big ? 3 : 2] = 43;
    field[big ? 13 : 12] = 4;  // a long number
    far[big ? 7 : 4] = 100;    // the folder lies behind the end
    for (const std::string& bytes : {other, field, far}) { EXPECT_EQ(exif_orientation(bytes), 1); }
    const size_t end_of_field = 8 + 2 + 12;
    for (size_t n = 0; n < whole.size(); n++)
      EXPECT_EQ(exif_orientation(std::string_view(whole).substr(0, n)), n < end_of_field ? 1 : 6) << n;
  }
}

// PNG, third edition: the chunk eXIf has what an Exif file has, in front of the pixels or behind them.
TEST(Decode, APngIsTurnedAsItsExifSays) {
  const auto chunk = [](std::string text) {
    const auto number = [](uint32_t v) {
      return std::string{char(v >> 24), char(v >> 16), char(v >> 8), char(v)};
    };
    const auto crc = uint32_t(crc32(0, reinterpret_cast<const Bytef*>(text.data()), uInt(text.size())));
    return number(uint32_t(text.size() - 4)) + text + number(crc);
  };
  // One row: a black pixel and a white one, in bits. A row begins with the number of its filter.
  const std::string row{'\0', '\x40'};
  std::string packed(64, '\0');
  uLongf bytes = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &bytes,
                     reinterpret_cast<const Bytef*>(row.data()), row.size()),
            Z_OK);
  packed.resize(bytes);
  const std::string head = "\x89PNG\r\n\x1a\n" + chunk(std::string("IHDR\0\0\0\2\0\0\0\1\1\0\0\0\0", 17)),
                    pixels = chunk("IDAT" + packed), end = chunk("IEND");
  for (const bool big : {false, true})
    for (const bool behind : {false, true}) {
      const std::string exif = chunk("eXIf" + tiff_of(big, 8));  // the row becomes a column, from below
      const auto picture = decode_picture(head + (behind ? pixels + exif : exif + pixels) + end);
      ASSERT_TRUE(picture) << picture.error().message;
      EXPECT_EQ(picture->width, 1);
      EXPECT_EQ(picture->height, 2);
      EXPECT_EQ(picture->rgb, (std::vector<uint8_t>{255, 255, 255, 0, 0, 0}));
    }
  const auto plain = decode_picture(head + pixels + end);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->width, 2);
  EXPECT_EQ(plain->rgb, (std::vector<uint8_t>{0, 0, 0, 255, 255, 255}));
}

// One row of two pixels, 1 and 2: as the first row or column, from its begin or its end.
TEST(Decode, OrientationsTurnAndMirror) {
  for (const auto& [orientation, upright_row, first] : {std::tuple(1, true, 1),
                                                        {2, true, 2},
                                                        {3, true, 2},
                                                        {4, true, 1},
                                                        {5, false, 1},
                                                        {6, false, 1},
                                                        {7, false, 2},
                                                        {8, false, 2}}) {
    const Picture p = upright({2, 1, {1, 1, 1, 2, 2, 2}}, orientation);
    EXPECT_EQ(p.width, upright_row ? 2 : 1) << orientation;
    EXPECT_EQ(p.height, upright_row ? 1 : 2) << orientation;
    EXPECT_EQ(p.rgb[0], first) << orientation;
    EXPECT_EQ(p.rgb[3], 3 - first) << orientation;
  }
}

// GIF89a, section 20: a picture's own table of colours comes before that of the file.
TEST(Decode, AGifPictureHasItsOwnColours) {
  const std::string table = {"\x00\x00\x00\xff\xff\xff", 6}, own = {"\xff\x00\x00\x00\xff\x00", 6};
  const std::string one_pixel = {"\x02\x02\x4c\x01\x00", 5};  // colour 1: clear, 1, end in codes of 3 bits
  const auto gif_of = [&](const std::string& colours) {
    return std::string("GIF89a\x01\x00\x01\x00\x80\x00\x00", 13) + table +
           std::string("\x2c\x00\x00\x00\x00\x01\x00\x01\x00", 9) + (colours.empty() ? '\0' : '\x80') +
           colours + one_pixel + ";";
  };
  const auto by_file = decode_picture(gif_of("")), by_picture = decode_picture(gif_of(own));
  ASSERT_TRUE(by_file) << by_file.error().message;
  ASSERT_TRUE(by_picture) << by_picture.error().message;
  EXPECT_EQ(by_file->rgb, (std::vector<uint8_t>{255, 255, 255}));
  EXPECT_EQ(by_picture->rgb, (std::vector<uint8_t>{0, 255, 0}));
}

TEST(Decode, GoldenPicturesToRefuse) {
  int refused = 0;
  for (const auto& golden : read_json(golden_dir() + "/vision/decoding.json")) {
    if (recognized(golden["kind"])) continue;
    const auto picture = decoded_file(golden["file"]);
    EXPECT_FALSE(picture) << golden["file"];
    if (!picture) { EXPECT_GT(picture.error().message.size(), 10u); }
    refused++;
  }
  EXPECT_GE(refused, 10);
}

TEST(Decode, OtherFormatsAreNamed) {
  const auto bmp = decoded_file("plain.bmp");
  ASSERT_FALSE(bmp);
  EXPECT_EQ(bmp.error().code, Code::Unsupported);
  EXPECT_NE(bmp.error().message.find("BMP"), std::string::npos);
  EXPECT_NE(bmp.error().remedy.find("PNG"), std::string::npos);
  const auto text = decode_picture("Once upon a time");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::Unsupported);
}

TEST(Decode, TooManyPixelsAreRefusedByTheHeader) {
  auto png = read_file(golden_picture("bad-bomb.png")), jpeg = read_file(golden_picture("photo.jpg"));
  ASSERT_TRUE(png && jpeg);
  const size_t frame = jpeg->find("\xff\xc0");  // its marker, length and precision; then height and width
  ASSERT_NE(frame, std::string::npos);
  jpeg->replace(frame + 5, 4, "\x60\x00\x60\x00", 4);
  for (const std::string& bytes : {*png, *jpeg}) {
    const auto picture = decode_picture(bytes);
    ASSERT_FALSE(picture);
    EXPECT_EQ(picture.error().code, Code::Usage);
    EXPECT_NE(picture.error().message.find("40 million"), std::string::npos) << picture.error().message;
  }
}

// Every cut of a file, and every byte of it changed: an error or a picture of the declared size.
TEST(Decode, DamagedFiles) {
  for (const char* name :
       {"palette.png", "grey.jpg", "progressive.jpg", "lossy.webp", "animated.gif", "animated.png"}) {
    const auto whole = read_file(golden_picture(name));
    ASSERT_TRUE(whole);
    for (size_t n = 0; n < whole->size(); n += 1 + n / 40) {
      auto cut = decode_picture(std::string_view(*whole).substr(0, n));
      if (cut) { EXPECT_EQ(cut->rgb.size(), size_t(cut->width) * size_t(cut->height) * 3); }
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string changed = *whole;
        changed[n] = char(changed[n] ^ change);
        auto picture = decode_picture(changed);
        if (picture) { EXPECT_EQ(picture->rgb.size(), size_t(picture->width) * size_t(picture->height) * 3); }
      }
    }
  }
}

TEST(Decode, HalfAPictureIsRefused) {
  for (const char* name :
       {"photo.png", "photo.jpg", "progressive.jpg", "lossless.webp", "lossy.webp", "animated.gif"}) {
    const auto whole = read_file(golden_picture(name));
    ASSERT_TRUE(whole);
    EXPECT_FALSE(decode_picture(std::string_view(*whole).substr(0, whole->size() / 3))) << name;
  }
}

}  // namespace
}  // namespace gimbal::test
