// How the weights of microsoft/BitNet's files lie: every matrix of the reference data, which tiles are known,
// and the errors where they are not.
#include "files/ternary_layout.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

Ternary kind_of(const nlohmann::ordered_json& golden) {
  return golden["ggml_type"] == 38 ? Ternary::TL1 : Ternary::TL2;
}

Status read_from(const void* text, uint64_t at, void* to, size_t n) {
  const auto& bytes = *static_cast<const std::string*>(text);
  EXPECT_LE(at + n, bytes.size());
  std::memcpy(to, bytes.data() + at, n);
  return Done{};
}

TEST(TernaryLayout, EveryMatrixOfTheReferenceData) {
  int cases = 0;
  for (const char* name : {"TL1", "TL2"}) {
    const auto golden = read_json(golden_dir() + "/tl/" + name + ".json");
    for (const auto& c : golden["cases"]) {
      const Ternary kind = kind_of(golden);
      const TernaryTiles t{c["rows"], c["columns"], c["BM"], c["BK"], c["bm"]};
      SCOPED_TRACE(c["name"].get<std::string>());
      EXPECT_EQ(ternary_bytes(kind, t.rows, t.columns), c["data_bytes"].get<uint64_t>());
      EXPECT_EQ(ternary_region(kind, t.rows, t.columns), c["region_bytes"].get<uint64_t>());
      const std::string raw = base64_decode(c["raw_b64"]), codes = base64_decode(c["codes_b64"]);
      TernaryChoice choice;
      choice.tiles = {t};
      const auto tiles = ternary_tiles(kind, t.rows, t.columns, choice);
      ASSERT_TRUE(tiles) << tiles.error().message;
      for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, t.rows}, {t.rows / 2 - 3, t.rows / 2 + 7}}) {
        std::vector<uint8_t> got(size_t((end - begin) * t.columns));
        const auto ok = read_ternary_rows(kind, *tiles, read_from, &raw, begin, end, got.data());
        ASSERT_TRUE(ok) << ok.error().message;
        for (size_t i = 0; i < got.size(); i++)
          ASSERT_EQ(int(got[i]) - 1, int(int8_t(codes[size_t(begin * t.columns) + i])))
              << "row " << begin << " value " << i;
      }
      cases++;
    }
  }
  EXPECT_GE(cases, 28);
}

// The tiles of published models, of the set-up program and of the preset files.
TEST(TernaryLayout, PublishedShapesAreKnown) {
  const auto golden = read_json(golden_dir() + "/tl/published.json");
  int shapes = 0;
  for (Ternary kind : {Ternary::TL1, Ternary::TL2})
    for (const auto& c : golden[kind == Ternary::TL1 ? "TL1" : "TL2"]) {
      const auto& config = c["kernel_config"];
      SCOPED_TRACE(c["model"].get<std::string>() + " " + config.dump());
      TernaryChoice choice;
      choice.decided = true, choice.preset = c["source"] != "default";
      const auto t = ternary_tiles(kind, config["m"], config["k"], choice);
      ASSERT_TRUE(t) << t.error().message;
      EXPECT_EQ(t->tile_rows, config["bm"].get<int>());
      EXPECT_EQ(t->tile_columns, config["bk"].get<int>());
      EXPECT_EQ(t->group, config["bmm"].get<int>());
      EXPECT_EQ(ternary_bytes(kind, t->rows, t->columns), c["data_bytes"].get<uint64_t>());
      EXPECT_EQ(ternary_region(kind, t->rows, t->columns), c["region_bytes"].get<uint64_t>());
      shapes++;
    }
  EXPECT_EQ(shapes, 24);
}

TEST(TernaryLayout, WhatIsNotKnownIsRefused) {
  const auto unknown = ternary_tiles(Ternary::TL2, 2560, 6912, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::Unsupported);
  EXPECT_NE(unknown.error().message.find("the tile layout of a tl2 matrix of 2560 x 6912"),
            std::string::npos);
  EXPECT_NE(unknown.error().remedy.find("'kernel_config'"), std::string::npos);
  // Two layouts are documented for Llama3-8B-1.58 in TL1: the user says which.
  TernaryChoice choice;
  const auto two = ternary_tiles(Ternary::TL1, 14336, 4096, choice);
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("two layouts"), std::string::npos);
  EXPECT_NE(two.error().remedy.find("preset"), std::string::npos);
  choice.decided = true;
  EXPECT_EQ(ternary_tiles(Ternary::TL1, 14336, 4096, choice)->group, 32);
  choice.preset = true;
  EXPECT_EQ(ternary_tiles(Ternary::TL1, 14336, 4096, choice)->group, 64);
  EXPECT_TRUE(ternary_tiles(Ternary::TL2, 14336, 4096, {})) << "of TL2 there is one";
  // A configuration is asked alone, and must cut the matrix.
  choice = {};
  choice.tiles = {{64, 64, 32, 32, 32}};
  EXPECT_FALSE(ternary_tiles(Ternary::TL1, 1536, 4096, choice));
  for (const TernaryTiles& t : std::vector<TernaryTiles>{{64, 64, 48, 32, 32},
                                                         {64, 64, 32, 48, 32},
                                                         {64, 64, 32, 32, 16},
                                                         {64, 64, 32, 32, 64},
                                                         {64, 64, 16, 32, 32},
                                                         {64, 64, 0, 32, 32},
                                                         {64, 64, 96, 32, 32},
                                                         {64, 64, 32, -32, 32},
                                                         {64, 64, 32, 4, 32}}) {
    choice.tiles = {t};
    const auto cut = ternary_tiles(Ternary::TL1, 64, 64, choice);
    ASSERT_FALSE(cut) << t.tile_rows << " " << t.tile_columns << " " << t.group;
    EXPECT_EQ(cut.error().code, Code::Malformed);
  }
  for (const TernaryTiles& t :
       std::vector<TernaryTiles>{{64, 320, 32, 96, 64}, {64, 320, 32, 100, 32}, {64, 330, 32, 96, 32}}) {
    choice.tiles = {t};
    EXPECT_FALSE(ternary_tiles(Ternary::TL2, t.rows, t.columns, choice))
        << t.columns << " " << t.tile_columns;
  }
}

// Bytes that stand for no weights: what another layout, or damage, looks like.
TEST(TernaryLayout, BytesThatAreNoWeights) {
  for (Ternary kind : {Ternary::TL1, Ternary::TL2, Ternary::FourRows}) {
    TernaryTiles t{32, 320, 32, kind == Ternary::TL2 ? 96 : 64, 32};
    if (kind == Ternary::FourRows) t = *ternary_tiles(kind, 32, 320, {});
    const std::string raw(ternary_bytes(kind, 32, 320), '\xff');
    std::vector<uint8_t> codes(320);
    const auto ok = read_ternary_rows(kind, t, read_from, &raw, 5, 6, codes.data());
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().code, Code::Malformed);
    EXPECT_NE(ok.error().message.find("row 5 of a ternary matrix of 32 x 320"), std::string::npos)
        << ok.error().message;
  }
}

TEST(TernaryLayout, TheCode3IsFoundWhereverItIs) {
  std::string codes = "\x12\x28\x49\x86\xa5\x6a\x94\x51\x0a\xa0\x24\x99\x46\x18\x62\x85\x11\xaa";
  EXPECT_EQ(find_code_3(codes.data(), codes.size()), codes.size());
  for (size_t at = 0; at < codes.size(); at++)
    for (int place = 0; place < 8; place += 2) {
      std::string damaged = codes;
      damaged[at] |= char(3 << place);
      EXPECT_EQ(find_code_3(damaged.data(), damaged.size()), at) << place;
      EXPECT_EQ(find_code_3(damaged.data(), at), at) << place;
    }
}

TEST(TernaryLayout, ChoicesAndConfigurations) {
  EXPECT_EQ(ternary_choice("")->i2_s, 128);
  EXPECT_EQ(ternary_choice("i2_s-64")->i2_s, 64);
  EXPECT_EQ(ternary_choice("i2_s-4x1")->i2_s, 4);
  EXPECT_TRUE(ternary_choice("preset")->preset);
  EXPECT_TRUE(ternary_choice("default")->decided && !ternary_choice("default")->preset);
  EXPECT_FALSE(ternary_choice("/no/such/file.ini"));
  const auto read = ternary_choice(golden_dir() + "/tl/bitnet-b158-tl2.kernel_config.ini");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->tiles.size(), 4u);
  EXPECT_EQ(read->tiles[1].rows, 128);
  EXPECT_EQ(read->tiles[1].columns, 256);
  EXPECT_EQ(read->tiles[1].tile_rows, 64);
  EXPECT_EQ(read->tiles[1].tile_columns, 192);
  EXPECT_EQ(read->tiles[1].group, 32);
  for (const char* wrong : {"", "m = 3", "[a]\nm = 3", "[a]\nm 3", "[a]\nm = -3\nk=1\nbm=1\nbk=1\nbmm=1",
                            "[a]\nm = 3x", "[a]\nq = 3", "[a]\nm=99999999999\n"})
    EXPECT_FALSE(parse_kernel_config(wrong, "x.ini")) << wrong;
  EXPECT_TRUE(parse_kernel_config("; a\r\n[a]\r\n m = 3 \r\nk=1\nbm=1\nbk=1\nbmm=1", "x.ini"));
}

}  // namespace
}  // namespace gimbal::test
