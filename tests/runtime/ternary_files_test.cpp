// BitNet's weights in all their layouts are the same weights: TL1, TL2 and the three orders of I2_S give the
// same bits.
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "files/gguf.h"
#include "model/arch.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/made_gguf.h"

namespace gimbal::test {
namespace {

std::string tl_file(const char* name) { return golden_dir() + "/tl/bitnet-b158-" + name; }
std::string config_of(const char* name) { return tl_file(name) + ".kernel_config.ini"; }

std::vector<float> logits(const std::string& path, const std::string& kernel_config,
                          const std::vector<int32_t>& tokens, int split = 0) {
  EngineOptions o;
  o.run.cache_type = DType::F32, o.run.context = 512, o.run.logit_rows = 256, o.kernel_config = kernel_config;
  auto engine = open_engine(path, o);
  if (!engine) {
    ADD_FAILURE() << path << ": " << engine.error().message;
    return {};
  }
  return engine->all_logits(tokens, split);
}

// How a byte of i2_s says four codes: as blocks of `block` values, or (4) as four rows.
std::string as_i2_s(const std::vector<uint8_t>& codes, int64_t rows, int64_t columns, int block) {
  std::string bytes(size_t(rows * columns / 4), '\0');
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      const int64_t j = c % block, quarter = block / 4;
      const int64_t at = block == 4 ? r / 4 * columns + c : (r * columns + c) / block * quarter + j % quarter;
      const int64_t place = block == 4 ? r % 4 : j / quarter;
      bytes[size_t(at)] |= char(codes[size_t(r * columns + c)] << (6 - 2 * place));
    }
  return bytes;
}

// The file's model with its ternary matrices in an order of i2_s.
std::string rewritten(const ModelSource& from, int block) {
  MadeGguf w;
  w.add(from.metadata());
  for (const StoredTensor& t : from.tensors()) {
    const auto data = from.read(t);
    if (!data) {
      ADD_FAILURE() << data.error().message;
      return "";
    }
    std::string text(reinterpret_cast<const char*>(data->data()), data->size());
    if (t.ternary == Ternary::None) {
      w.tensor(t, text);
      continue;
    }
    std::vector<uint8_t> codes(size_t(t.dim[0] * t.dim[1]));
    for (size_t i = 0; i < codes.size(); i++)  // read() gives i2_s64
      codes[i] = uint8_t(text[i / 64 * 16 + i % 16]) >> (6 - 2 * (i % 64 / 16)) & 3;
    w.tensor(t.name, {t.dim, t.dim + t.rank}, DType::I2_S,
             as_i2_s(codes, t.dim[1], t.dim[0], block) + text.substr(codes.size() / 4));
  }
  return w.build();
}

TEST(TernaryFiles, OneModelInFiveLayouts) {
  const auto golden = read_json(tl_file("tl1.json"));
  const std::vector<int32_t> tokens = golden["cases"].back()["tokens"];
  const auto want = logits(tl_file("tl1.gguf"), config_of("tl1"), tokens);
  ASSERT_FALSE(want.empty());
  EXPECT_EQ(logits(tl_file("tl2.gguf"), config_of("tl2"), tokens), want);
  const auto from = open_gguf(tl_file("tl1.gguf"), *ternary_choice(config_of("tl1")));
  ASSERT_TRUE(from) << from.error().message;
  for (auto [block, choice] :
       {std::pair<int, const char*>{128, ""}, {128, "i2_s-128"}, {64, "i2_s-64"}, {4, "i2_s-4x1"}}) {
    const std::string path = temporary_path(format("i2_s-{}.gguf", block));
    ASSERT_TRUE(write_file(path, rewritten(*from, block)));
    EXPECT_EQ(logits(path, choice, tokens), want) << choice;
    EXPECT_EQ(logits(path, choice, tokens, 1), want) << choice;
    if (block != 128) { EXPECT_NE(logits(path, "", tokens), want) << "another order is another model"; }
  }
}

// Rounding activations to 8 bits, one scale a row, is all that parts them from double precision:
// scripts/measure/activation-rounding.py.
TEST(TernaryFiles, AreNearTheReference) {
  for (const char* name : {"tl1", "tl2"}) {
    const auto golden = read_json(tl_file(name) + ".json");
    const size_t vocabulary = golden["n_vocab"];
    double off = 0, count = 0;
    int greedy = 0, steps = 0;
    for (const auto& c : golden["cases"]) {
      const std::vector<int32_t> tokens = c["tokens"];
      const auto got = logits(tl_file(name) + ".gguf", config_of(name), tokens);
      const auto want = base64_floats(c["logits_ref64"]);
      const std::vector<int> positions = c["positions"];
      ASSERT_EQ(want.size(), positions.size() * vocabulary);
      ASSERT_EQ(got.size(), tokens.size() * vocabulary);
      for (size_t r = 0; r < positions.size(); r++) {
        const float *a = &got[size_t(positions[r]) * vocabulary], *b = &want[r * vocabulary];
        for (size_t i = 0; i < vocabulary; i++) off += std::fabs(double(a[i]) - b[i]), count++;
        steps++, greedy += std::max_element(a, a + vocabulary) - a == std::max_element(b, b + vocabulary) - b;
      }
    }
    std::printf("%s: mean %.2e, %d of %d largest logits agree\n", name, off / count, greedy, steps);
    EXPECT_LT(off / count, 2 * 8.5189e-2);
  }
}

TEST(TernaryFiles, AreRefusedWithTheChoiceWithoutAConfiguration) {
  for (const char* name : {"tl1", "tl2"}) {
    const auto file = open_gguf(tl_file(name) + ".gguf");
    ASSERT_TRUE(file) << file.error().message;
    const auto config = configure(*file);
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, Code::Unsupported);
    EXPECT_NE(config.error().message.find(std::string(name) + " matrix of"), std::string::npos)
        << config.error().message;
    EXPECT_NE(config.error().remedy.find("kernel_config.ini"), std::string::npos);
    for (const StoredTensor& t : file->tensors())
      if (t.ternary != Ternary::None) {
        EXPECT_STREQ(stored_name(t), name);
        EXPECT_FALSE(file->read(t));
      }
    // That of the other type cuts other tiles, or none.
    EXPECT_FALSE(configure(*open_gguf(tl_file(name) + ".gguf", *ternary_choice("default"))));
  }
}

}  // namespace
}  // namespace gimbal::test
