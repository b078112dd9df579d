// gimbal embed-image: what the program writes of pictures.
#include <filesystem>

#include "base/file.h"
#include "media/golden_pictures.h"
#include "support/cli.h"
#include "support/golden.h"
#include "support/made_gguf.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;

TEST(EmbedImage, Rgb) {
  const std::string out = temporary_path("rgb");
  const Ran r = gimbal({"embed-image", "--image", golden_picture("photo.png"), "--image",
                        golden_picture("rotated6.jpg"), "--stage", "rgb", "-o", out, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(Json::parse(r.out),
            Json::parse(R"({"images":[{"width":97,"height":73},{"width":73,"height":97}]})"));
  EXPECT_EQ(std::filesystem::file_size(out), 2u * 97 * 73 * 3);
}

TEST(EmbedImage, Pixels) {
  const std::string out = temporary_path("pixels");
  const std::string mmproj = golden_dir() + "/vision/mmproj-gemma3.gguf";
  const Ran r = gimbal({"embed-image", "--mmproj", mmproj, "--image", golden_picture("photo.png"), "--stage",
                        "pixels", "-o", out, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(Json::parse(r.out),
            Json::parse(R"({"pieces":[{"image":0,"what":"whole","width":60,"height":60,"rows":9}]})"));
  const auto bytes = read_file(out);
  ASSERT_TRUE(bytes);
  const Json golden = read_json(golden_dir() + "/vision/gemma3.json");
  const std::string expected = unpacked(golden["cases"][0]["pixels_u8_zlib_b64"], 60 * 60 * 3);
  ASSERT_EQ(bytes->size(), expected.size() * 4);
  for (size_t i = 0; i < expected.size(); i++) {
    float value;
    std::memcpy(&value, bytes->data() + 4 * i, 4);
    ASSERT_NEAR(value, (float(uint8_t(expected[i])) / 255 - 0.5) / 0.5, 1e-6) << i;
  }
}

TEST(EmbedImage, Sounds) {
  const std::string out = temporary_path("mel"), ultravox = temporary_path("mmproj.gguf");
  MadeGguf file;
  file.string("general.architecture", "clip").string("clip.projector_type", "ultravox");
  file.u32("clip.audio.num_mel_bins", 16);
  ASSERT_TRUE(write_file(ultravox, file.build()));
  const std::string sound = golden_picture("short.wav");
  const Ran r = gimbal(
      {"embed-image", "--mmproj", ultravox, "--audio", sound, "--stage", "pixels", "-o", out, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(Json::parse(r.out)["pieces"][0]["what"], "sound");
  EXPECT_EQ(std::filesystem::file_size(out), 4u * 16 * 3000);
}

TEST(EmbedImage, Refusals) {
  const std::string out = temporary_path("refused"), text = golden_dir() + "/vision/text-qwen2vl.gguf";
  const std::string photo = golden_picture("photo.png");
  const struct {
    std::vector<std::string> arguments;
    int code;
    const char* part;
  } cases[] = {
      {{"--stage", "rgb", "--image", photo}, 2, "--output"},
      {{"--stage", "rgb", "-o", out}, 2, "--image"},
      {{"--image", photo, "--stage", "pixels", "-o", out}, 2, "--mmproj"},
      {{"--image", photo, "--mmproj", text, "--stage", "pixels", "-o", out}, 3, "clip.projector_type"},
      {{"--stage", "rgb", "--image", golden_picture("bad-cut.png"), "-o", out}, 3, "bad-cut.png"},
      {{"--stage", "rgb", "--image", golden_picture("bad-bomb.png"), "-o", out}, 2, "40 million"},
      {{"--stage", "rgb", "--image", golden_picture("none.png"), "-o", out}, 1, "none.png"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> arguments = {"embed-image"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const Ran r = gimbal(arguments);
    EXPECT_EQ(r.code, c.code) << r.err;
    EXPECT_NE(r.err.find(c.part), std::string::npos) << r.err;
    EXPECT_FALSE(std::filesystem::exists(out)) << r.err;
  }
}

}  // namespace
}  // namespace gimbal::test
