// Pieces of pictures: every 8-bit value as Pillow 11.3 makes it.
#include "media/pieces.h"

#include <cmath>
#include <span>

#include "base/file.h"
#include "files/gguf.h"
#include "media/golden_pictures.h"
#include "media/picture.h"
#include "support/pictures.h"

namespace gimbal::test {
namespace {

struct GoldenEncoder {
  std::string name;
  nlohmann::ordered_json golden;
  PreprocessSettings settings;
};

// The encoders of pictures whose pixels are part of the data.
std::vector<GoldenEncoder> golden_encoders() {
  std::vector<GoldenEncoder> all;
  for (const std::string& path : vision_goldens()) {
    auto golden = read_json(path);
    if (!golden.is_object() || !golden.contains("cases") ||
        !golden["cases"][0].contains("pixels_u8_zlib_b64"))
      continue;
    auto bytes = read_file(vision_path(golden["mmproj"]));
    EXPECT_TRUE(bytes) << path;
    auto file = parse_gguf({reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}, "golden");
    EXPECT_TRUE(file) << path;
    auto settings = preprocess_settings(file->metadata());
    EXPECT_TRUE(settings) << path << ": " << settings.error().message;
    all.push_back({path, std::move(golden), std::move(*settings)});
  }
  EXPECT_GE(all.size(), 6u);
  return all;
}

Picture picture_named(const std::string& name) {
  auto bytes = read_file(vision_path(name));
  EXPECT_TRUE(bytes) << name;
  auto picture = decode_picture(*bytes);
  EXPECT_TRUE(picture) << name;
  return std::move(*picture);
}

TEST(Pieces, GoldenPixels) {
  int compared = 0;
  for (const GoldenEncoder& encoder : golden_encoders())
    for (const auto& golden : encoder.golden["cases"]) {
      SCOPED_TRACE(encoder.name + ", case " + golden["name"].get<std::string>());
      std::vector<Piece> pieces;
      int image = 0;
      for (const std::string name : golden["images"]) {
        auto some = pieces_of(encoder.settings, picture_named(name), image++);
        ASSERT_TRUE(some) << some.error().message;
        for (Piece& p : *some) pieces.push_back(std::move(p));
      }
      ASSERT_EQ(pieces.size(), golden["pieces"].size());
      std::string values;
      for (size_t i = 0; i < pieces.size(); i++) {
        const auto& g = golden["pieces"][i];
        EXPECT_EQ(pieces[i].image, g["image"].get<int>());
        EXPECT_EQ(name_of(pieces[i].what), g["what"].get<std::string>());
        EXPECT_EQ(pieces[i].width, g["width"].get<int>());
        EXPECT_EQ(pieces[i].height, g["height"].get<int>());
        EXPECT_EQ(rows_of(encoder.settings, pieces[i]), g["rows"].get<int>());
        if (g.contains("grid")) {
          const auto [columns, rows] = grid_of(encoder.settings, pieces[i]);
          EXPECT_EQ(columns, g["grid"][0].get<int>());
          EXPECT_EQ(rows, g["grid"][1].get<int>());
        }
        EXPECT_EQ(pieces[i].row, g.value("row", 0));
        EXPECT_EQ(pieces[i].column, g.value("column", 0));
        values.append(pieces[i].rgb.begin(), pieces[i].rgb.end());
      }
      const std::string expected = unpacked(golden["pixels_u8_zlib_b64"], values.size());
      EXPECT_EQ(values.size(), expected.size());
      size_t different = 0;
      for (size_t i = 0; i < values.size(); i++) different += values[i] != expected[i];
      EXPECT_EQ(different, 0u) << "of " << values.size();
      for (int c = 0; c < 3; c++) {
        EXPECT_EQ(encoder.settings.mean[c], encoder.golden["mean"][size_t(c)].get<float>());
        EXPECT_EQ(encoder.settings.std[c], encoder.golden["std"][size_t(c)].get<float>());
      }
      compared++;
    }
  EXPECT_GE(compared, 8);
}

TEST(Pieces, Normalised) {
  PreprocessSettings s;
  for (int c = 0; c < 3; c++) s.mean[c] = 0.25f * float(c), s.std[c] = 0.5f;
  Piece piece{0, PieceKind::Whole, 0, 0, 1, 1, {255, 0, 51}, {}};
  float out[3];
  normalised(s, piece, out);
  EXPECT_FLOAT_EQ(out[0], 2.0f);
  EXPECT_FLOAT_EQ(out[1], -0.5f);
  EXPECT_FLOAT_EQ(out[2], -0.6f);
}

// transformers' smart_resize(): a rounded size of just the most pixels is not shrunk, one of more is.
TEST(Pieces, TheMostPixelsAreAllowed) {
  PreprocessSettings s;
  s.projector = "qwen2vl_merger", s.rule = PieceRule::Free;
  s.patch = 14, s.merge = 2, s.min_pixels = 28 * 28, s.max_pixels = 16 * 28 * 28;
  const auto size_of = [&](int width, int height) {
    Picture picture{width, height, std::vector<uint8_t>(size_t(width) * size_t(height) * 3)};
    const auto pieces = pieces_of(s, picture, 0);
    EXPECT_TRUE(pieces && pieces->size() == 1);
    return std::pair((*pieces)[0].width, (*pieces)[0].height);
  };
  EXPECT_EQ(size_of(115, 110), std::pair(112, 112));
  EXPECT_EQ(size_of(127, 110), std::pair(112, 84));
}

// Memory is reserved for so many: those of the largest piece that a rule makes.
TEST(Pieces, TheMostPatchesOfAPiece) {
  PreprocessSettings s;
  s.patch = 16, s.image_size = 512, s.merge = 4;
  EXPECT_EQ(most_patches_of(s), 32 * 32);
  s.rule = PieceRule::Refined, s.longest_side = 2048;
  EXPECT_EQ(most_patches_of(s), 32 * 32) << "it is cut into tiles of 512 pixels";
  s.rule = PieceRule::Longest, s.longest_side = 1540, s.merge = 2;
  EXPECT_EQ(most_patches_of(s), 98 * 98) << "1540 pixels are 49 rows of 32";
  s.rule = PieceRule::Split, s.longest_side = 0, s.image_size = 256;
  EXPECT_EQ(most_patches_of(s), 32 * 32) << "tiles have 512 pixels, whatever the size of the encoder";
  s.rule = PieceRule::Free, s.image_size = 0, s.max_pixels = 100 * 32 * 32;
  EXPECT_EQ(most_patches_of(s), 100 * 2 * 2);
}

// The metadata of a small projector file.
Metadata clip_metadata(std::string_view projector) {
  static const float half[] = {0.5f, 0.5f, 0.5f};
  const MetadataArray three{MetadataType::F32, 3, std::as_bytes(std::span(half))};
  Metadata m("made");
  m.put("clip.projector_type", {MetadataType::String, projector});
  m.put("clip.vision.image_size", {MetadataType::U32, uint64_t(28)});
  m.put("clip.vision.patch_size", {MetadataType::U32, uint64_t(7)});
  m.put("clip.vision.image_mean", {MetadataType::Array, three});
  m.put("clip.vision.image_std", {MetadataType::Array, three});
  return m;
}

// OpenBMB's: a picture of no more pixels than the encoder's is shown once, in its own shape; llama.cpp makes
// a square of it, or slices it if one side is longer.
TEST(Pieces, SmallPicturesOfMiniCpmStayWhole) {
  PreprocessSettings s;
  s.projector = "resampler", s.rule = PieceRule::Slices;
  s.patch = 14, s.image_size = 448, s.queries = 64;
  const auto sizes_of = [&](int width, int height) {
    Picture picture{width, height, std::vector<uint8_t>(size_t(width) * size_t(height) * 3)};
    const auto pieces = pieces_of(s, picture, 0);
    EXPECT_TRUE(pieces);
    std::vector<std::pair<int, int>> sizes;
    for (const Piece& p : *pieces) sizes.emplace_back(p.width, p.height);
    return sizes;
  };
  using Sizes = std::vector<std::pair<int, int>>;
  EXPECT_EQ(sizes_of(448, 448), (Sizes{{448, 448}}));
  EXPECT_EQ(sizes_of(100, 25), (Sizes{{896, 224}}));
  EXPECT_EQ(sizes_of(800, 200), (Sizes{{896, 224}}));
  EXPECT_EQ(sizes_of(900, 450), (Sizes{{630, 322}, {448, 448}, {448, 448}}));
}

// Without a number of queries: 96 in the first version, else 64.
TEST(Pieces, QueriesOfMiniCpm) {
  Metadata m = clip_metadata("resampler");
  EXPECT_EQ(preprocess_settings(m)->queries, 96);
  EXPECT_TRUE(preprocess_settings(m)->slices_together);
  m.put("clip.minicpmv_version", {MetadataType::U32, uint64_t(3)});
  EXPECT_EQ(preprocess_settings(m)->queries, 64);
  EXPECT_FALSE(preprocess_settings(m)->slices_together);
}

// Sides from 1 to 65,535: an answer of bounded size, or an error.
TEST(Pieces, AnySize) {
  for (const GoldenEncoder& encoder : golden_encoders())
    for (const auto& [width, height] :
         {std::pair{1, 1}, {1, 65535}, {65535, 1}, {2, 4001}, {3001, 2}, {640, 480}, {1, 2}, {31, 1000}}) {
      Picture picture{width, height, {}};
      picture.rgb.assign(size_t(width) * size_t(height) * 3, 77);
      const auto pieces = pieces_of(encoder.settings, picture, 0);
      if (!pieces) continue;
      size_t pixels = 0;
      for (const Piece& p : *pieces) {
        EXPECT_EQ(p.rgb.size(), size_t(p.width) * size_t(p.height) * 3);
        pixels += p.rgb.size() / 3;
      }
      EXPECT_LE(pixels, 80'000'000u);
    }
}

// The refusal after one entry was replaced.
std::string refusal(std::string_view projector, std::string_view key, MetadataEntry entry) {
  Metadata m = clip_metadata(projector);
  EXPECT_TRUE(preprocess_settings(m)) << projector;
  m.put(key, std::move(entry));
  const auto settings = preprocess_settings(m);
  return settings ? "accepted" : settings.error().message;
}

TEST(Pieces, HostileMetadata) {
  const auto u32 = [](uint64_t v) { return MetadataEntry{MetadataType::U32, v}; };
  static const float two[] = {0.5f, 0.5f}, zero[] = {0.5f, 0, 0.5f}, inf[] = {1, INFINITY, 1};
  static const int32_t odd[] = {28, 56, 28}, crooked[] = {28, 57}, huge[] = {28 * 1024, 28 * 1024},
                       negative[] = {-28, 28};
  const auto floats = [](std::span<const float> v) {
    return MetadataEntry{MetadataType::Array, MetadataArray{MetadataType::F32, v.size(), std::as_bytes(v)}};
  };
  const auto integers = [](std::span<const int32_t> v) {
    return MetadataEntry{MetadataType::Array, MetadataArray{MetadataType::I32, v.size(), std::as_bytes(v)}};
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << " does not name " << part;
  };
  for (const uint64_t side : {0, 6, 8193, INT32_MAX})
    has(refusal("gemma3", "clip.vision.image_size", u32(side)), "image_size");
  has(refusal("mlp", "clip.vision.patch_size", u32(0)), "patch_size");
  has(refusal("mlp", "clip.vision.patch_size", u32(29)), "image_size");
  has(refusal("gemma3", "clip.vision.projector.scale_factor", u32(0)), "scale_factor");
  has(refusal("gemma3", "clip.vision.projector.scale_factor", u32(5)), "image_size");
  has(refusal("qwen2vl_merger", "clip.vision.spatial_merge_size", u32(17)), "spatial_merge_size");
  for (const auto bad :
       {std::span<const float>(two), std::span<const float>(zero), std::span<const float>(inf)})
    has(refusal("pixtral", "clip.vision.image_std", floats(bad)), "image_std");
  has(refusal("pixtral", "clip.vision.image_mean", floats(two)), "image_mean");
  for (const auto bad : {std::span<const int32_t>(odd), std::span<const int32_t>(crooked),
                         std::span<const int32_t>(huge), std::span<const int32_t>(negative)})
    has(refusal("mlp", "clip.vision.image_grid_pinpoints", integers(bad)), "image_grid_pinpoints");
  has(refusal("internvl", "clip.vision.preproc_max_tiles", u32(65)), "preproc_max_tiles");
  has(refusal("internvl", "clip.vision.preproc_min_tiles", u32(13)), "preproc_max_tiles");
  has(refusal("idefics3", "clip.vision.preproc_image_size", u32(8193)), "preproc_image_size");
}

// A picture's side is at most 65,536 pixels, eight times that of the largest encoder.
TEST(Pieces, TheLargestPinpoints) {
  const auto accepts = [](int32_t width, int32_t height) {
    Metadata m = clip_metadata("mlp");
    const int32_t sides[] = {width, height};
    m.put("clip.vision.image_size", {MetadataType::U32, uint64_t(8192)});
    m.put("clip.vision.patch_size", {MetadataType::U32, uint64_t(32)});
    m.put("clip.vision.image_grid_pinpoints",
          {MetadataType::Array, MetadataArray{MetadataType::I32, 2, std::as_bytes(std::span(sides))}});
    const auto settings = preprocess_settings(m);
    if (!settings) {
      EXPECT_NE(settings.error().message.find("image_grid_pinpoints"), std::string::npos)
          << settings.error().message;
    }
    return bool(settings);
  };
  EXPECT_TRUE(accepts(65536, 8192));
  EXPECT_TRUE(accepts(8192, 65536));
  EXPECT_FALSE(accepts(65536 + 8192, 8192));
  EXPECT_FALSE(accepts(8192, 65536 + 8192));
}

TEST(Pieces, OtherProjectorsAreNamed) {
  const auto unknown = preprocess_settings(clip_metadata("frobnicator"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::Unsupported);
  EXPECT_NE(unknown.error().message.find("frobnicator"), std::string::npos);
  const auto none = preprocess_settings(Metadata("stories.gguf"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Malformed);
  EXPECT_NE(none.error().message.find("stories.gguf"), std::string::npos);
}

}  // namespace
}  // namespace gimbal::test
