// Beside microsoft/BitNet's own code (tests/data/peer/bitnet): what its quantizer packed is read as the
// weights that went in, activations round to its codes, and every row that multiplies ternary weights has its
// integer sums, in every instruction set of this CPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "discovery/registry.h"
#include "files/ternary_layout.h"
#include "support/cpu_rows.h"
#include "support/golden.h"
#include "support/ternary_product.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;

const Json& their_cases() {
  static const Json all = read_json(GIMBAL_SOURCE_DIR "/tests/data/peer/bitnet/sums.json");
  return all["cases"];
}

std::vector<int8_t> bytes_of(const Json& text) {
  const std::string data = base64_decode(text);
  return {data.begin(), data.end()};
}

// scripts/oracle/bitnet.py: hashed().
uint32_t hashed(uint32_t i, uint32_t seed) {
  uint32_t h = i * 2654435761u + seed;
  h = (h ^ h >> 15) * 2246822519u;
  return h ^ h >> 13;
}
std::vector<float> activations_of_case(const Json& c, size_t count) {
  std::vector<float> x(count, 127.f);
  if (c.value("kind", "random") != "large")
    for (size_t i = 0; i < count; i++)
      x[i] = float(int(hashed(uint32_t(i), c["seed"].get<uint32_t>() + 1000) >> 8 & 0xffff) - 32768) / 8192;
  return x;
}

struct Matrix {
  int rows = 0, columns = 0;
  std::vector<int8_t> weights;  // -1, 0, 1
};

Status read_from(const void* text, uint64_t at, void* to, size_t n) {
  const auto& bytes = *static_cast<const std::string*>(text);
  if (at + n > bytes.size()) return Error{Code::Malformed, "read past the end", ""};
  std::memcpy(to, bytes.data() + at, n);
  return Done{};
}
Matrix read_by_tiles(Ternary kind, const TernaryTiles& tiles, const std::string& raw) {
  Matrix m{int(tiles.rows), int(tiles.columns), {}};
  std::vector<uint8_t> codes(size_t(m.rows) * size_t(m.columns));
  const auto ok = read_ternary_rows(kind, tiles, read_from, &raw, 0, m.rows, codes.data());
  EXPECT_TRUE(ok) << ok.error().message;
  for (uint8_t code : codes) m.weights.push_back(int8_t(code - 1));
  return m;
}

Matrix matrix_of(const Json& c) {
  const std::string kernel = c["kernel"];
  if (kernel.starts_with("TL")) {  // a case of tests/data/tl
    const Json golden = read_json(golden_dir() + "/tl/" + kernel + ".json");
    for (const Json& g : golden["cases"])
      if (g["name"] == c["case"])
        return read_by_tiles(kernel == "TL1" ? Ternary::TL1 : Ternary::TL2,
                             {g["rows"], g["columns"], g["BM"], g["BK"], g["bm"]},
                             base64_decode(g["raw_b64"]));
    ADD_FAILURE() << c["case"];
    return {};
  }
  Matrix m{c["rows"], c["columns"], {}};
  const std::string raw = base64_decode(c["weights_b64"]);
  const size_t count = size_t(m.rows) * size_t(m.columns);
  if (c["kind"] == "large") m.weights.assign(count, 1);
  else if (kernel == "i2_s-4x1" && c["kind"] != "damaged")
    m = read_by_tiles(Ternary::FourRows, {m.rows, m.columns, 4, m.columns, 4}, raw);
  else if (kernel == "i2_s-4x1") {  // refused by the reader
    for (size_t i = 0; i < count; i++) {
      const size_t r = i / size_t(m.columns), at = r / 4 * size_t(m.columns) + i % size_t(m.columns);
      m.weights.push_back(int8_t((uint8_t(raw[at]) >> (6 - 2 * (r % 4)) & 3) - 1));
    }
  } else {
    const size_t block = kernel == "i2_s-128" ? 128 : 64, quarter = block / 4;
    for (size_t i = 0; i < count; i++)
      m.weights.push_back(int8_t(
          (uint8_t(raw[i / block * quarter + i % quarter]) >> (6 - 2 * (i % block / quarter)) & 3) - 1));
  }
  return m;
}

TEST(BitnetSums, TheirQuantizerPacksTheWeightsThatWentIn) {
  int cases = 0;
  for (const Json& c : their_cases()) {
    if (c["kernel"].get<std::string>().starts_with("TL") || c["kind"] != "random") continue;
    SCOPED_TRACE(c["kernel"].get<std::string>() + " " + c["columns"].dump());
    const Matrix m = matrix_of(c);
    for (size_t i = 0; i < m.weights.size(); i++)
      ASSERT_EQ(int(m.weights[i]), int(hashed(uint32_t(i), c["seed"]) >> 8) % 3 - 1) << i;
    float scale = 0;
    std::memcpy(&scale, &base64_decode(c["weights_b64"])[m.weights.size() / 4], 4);
    EXPECT_EQ(scale, 0.0371f);
    cases++;
  }
  EXPECT_EQ(cases, 16);
}

class BitnetSumsOfRows : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_device({"cpu", 0, true, "threads=1"});
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(opened->device);
    rows_ = std::make_unique<CpuRows>(*device_);
  }
  // The rows that this CPU can run and whose names end so.
  std::vector<const CpuKernel*> rows_named(std::initializer_list<const char*> ends) const {
    std::vector<const CpuKernel*> found;
    for (size_t i = 0; i < rows_->size(); i++)
      for (const char* end : ends)
        if (std::string_view((*rows_)[i].info.name).ends_with(end) &&
            !((*rows_)[i].info.needs & ~device_->describe().features))
          found.push_back(&(*rows_)[i]);
    return found;
  }
  std::unique_ptr<Device> device_;
  std::unique_ptr<CpuRows> rows_;
};

TEST_F(BitnetSumsOfRows, ActivationsRoundToTheirCodes) {
  const auto quantizers = rows_named({".quantize.a8_row"});
  ASSERT_FALSE(quantizers.empty());
  const Activations layout = activations_of(DType::A8_ROW);
  for (const Json& c : their_cases()) {
    const auto codes = bytes_of(c["activations_b64"]);
    std::vector<float> x = activations_of_case(c, codes.size());
    if (x.size() % 64) x.resize(x.size() / 64 * 64 + 64);  // zeros, as a row is padded
    const float theirs =
        std::bit_cast<float>(uint32_t(std::stoul(c["scale_bits"].get<std::string>(), nullptr, 16)));
    for (const CpuKernel* row : quantizers) {
      SCOPED_TRACE(std::string(row->info.name) + ", " + c["kernel"].get<std::string>());
      std::vector<uint8_t> y(x.size() / 64 * size_t(layout.bytes));
      gimbal_op op{};
      gimbal_value in{}, out{};
      op.inputs = 1;
      in.dim[0] = out.dim[0] = int64_t(x.size()), in.dim[1] = out.dim[1] = 1;
      CpuTask t{};
      t.op = &op, t.out = &out, t.in[0] = &in, t.y = y.data(), t.rows = 1;
      t.x[0] = reinterpret_cast<const unsigned char*>(x.data());
      row->launch(t, 0, row->work(t).items);
      for (size_t i = 0; i < codes.size(); i++)
        ASSERT_EQ(int(int8_t(y[i / 64 * size_t(layout.bytes) + size_t(layout.codes) + i % 64])),
                  int(codes[i]))
            << i;
      // They keep 127 / largest, we its inverse.
      EXPECT_NEAR(double(activation_scale(y.data())) * double(theirs), 1, 1e-6);
    }
  }
}

TEST_F(BitnetSumsOfRows, EveryRowHasTheirs) {
  int compared = 0, wrapped = 0;
  for (const Json& c : their_cases()) {
    const Matrix m = matrix_of(c);
    const auto activations = bytes_of(c["activations_b64"]);
    ASSERT_EQ(activations.size(), size_t(m.columns));
    for (DType type : {DType::I2_S, DType::I2_S64}) {
      if (m.columns % info(type).block) continue;
      TernaryProduct p(type, m.columns, m.weights, activations, 1, 1);
      const std::string multiplied = std::string(".mat_mul.") + info(type).name;
      for (const CpuKernel* row : rows_named({multiplied.c_str(), ".mat_mul.tl1", ".mat_mul.tl2"})) {
        const std::string name = row->info.name;
        SCOPED_TRACE(name + ", " + c["kernel"].get<std::string>() + " by " + c["by"].get<std::string>());
        // TL2 has no index for the code 3.
        if (c.value("kind", "") == "damaged" && name.ends_with("tl2")) continue;
        const auto sums = p.computed(*row, false);
        ASSERT_EQ(sums.size(), c["sums"].size());
        for (size_t r = 0; r < sums.size(); r++) {
          const auto theirs = c["sums"][r].get<int64_t>(), ours = int64_t(sums[r]);
          if (c.value("note", "").empty()) ASSERT_EQ(ours, theirs) << r;
          // Their sums of 16 bits wrap around for the largest activations; ours are right.
          else {
            ASSERT_EQ(ours, 127 * m.columns) << r;
            ASSERT_EQ((ours - theirs) % 65536, 0) << r;
            wrapped++;
          }
        }
        compared++;
      }
    }
  }
  std::printf("%d products with their sums, %d of them wrap around in their code\n", compared, wrapped);
  EXPECT_GE(compared, 37 * 3);
  EXPECT_GT(wrapped, 0);
}

}  // namespace
}  // namespace gimbal::test
