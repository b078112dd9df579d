// The kernels for tile registers. Where the CPU has none, the same text runs over tiles that are emulated
// after Intel's manual (variants/amx_emulated/tile.h), with plain vectors and with AVX-512: against the
// double-precision reference, bit by bit against the baseline, and in a whole model.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "backends/cpu/layout.h"
#include "conformance/conformance.h"
#include "discovery/registry.h"
#include "files/gguf.h"
#include "ops/op_def.h"
#include "packing/pack.h"
#include "support/cpu_rows.h"
#include "support/engine.h"
#include "support/golden.h"
#include "tensor/activations.h"
#include "tensor/format.h"
#include "tensor/quant_encode.h"

extern "C" const gimbal_backend* gimbal_backend_cpu_emulated(void);

namespace gimbal::test {
namespace {

// The CPU backend with the emulated variants in its table.
std::unique_ptr<Device> open_emulated() {
  auto d = Device::open(*gimbal_backend_cpu_emulated(), 0, "threads=2");
  EXPECT_TRUE(d) << d.error().message;
  return d ? std::move(*d) : nullptr;
}

// "amx" and "mat_mul.q8_0" of "cpu.amx.mat_mul.q8_0"
std::string variant_of(const std::string& kernel) { return kernel.substr(4, kernel.find('.', 4) - 4); }
std::string rest_of(const std::string& kernel) { return kernel.substr(kernel.find('.', 4) + 1); }

struct Row {
  size_t index;
  const CpuKernel* kernel;
  std::string variant, rest;
  DType weights() const {
    for (DType t : kAllDTypes)
      if (has(kernel->info.in[0].dtypes, t)) return t;
    return DType::F32;  // which tiles do not take
  }
};
const CpuKernel& private_half(size_t row) {
  static const test::CpuRows rows(*gimbal_backend_cpu_emulated());
  return rows[row];
}
// The rows by tiles that can run here; says which cannot.
std::vector<Row> tile_rows(const Device& d) {
  std::vector<Row> rows;
  std::set<std::string> missing;
  for (size_t i = 0; i < d.kernel_count(); i++) {
    const gimbal_kernel_info& info = d.kernel(i);
    const std::string name = info.name, variant = variant_of(name);
    if (variant.rfind("amx", 0) != 0 || info.numerics == GIMBAL_FAST)
      continue;  // pair_product_test has those
    if (info.needs & ~d.describe().features) missing.insert(variant);
    else rows.push_back({i, &private_half(i), variant, rest_of(name)});
  }
  for (const std::string& m : missing)
    std::printf("cpu.%s.*: not run, this CPU lacks what they need%s\n", m.c_str(),
                m == "amx" ? "; emulated tiles stand in for it" : "");
  return rows;
}
const CpuKernel* baseline(const Device& d, const std::string& rest) {
  for (size_t i = 0; i < d.kernel_count(); i++)
    if (d.kernel(i).name == "cpu.baseline." + rest) return &private_half(i);
  return nullptr;
}

int formats_of_codes() {
  int n = 0;
  for (DType t : kAllDTypes) n += is_weight(format_of(t)) && format_of(t).number == Number::Codes;
  return n;
}

TEST(Amx, EveryRealRowHasAnEmulatedTwin) {
  auto device = open_emulated();
  std::map<std::string, std::map<std::string, gimbal_kernel_info>>
      rows;  // by variant and the rest of the name
  for (size_t i = 0; i < device->kernel_count(); i++) {
    const gimbal_kernel_info& info = device->kernel(i);
    rows[variant_of(info.name)][rest_of(info.name)] = info;
  }
  EXPECT_EQ(int(rows["amx_emulated"].size()), formats_of_codes());
#if defined(__x86_64__)
  for (const char* real_or_twin : {"amx", "amx_emulated_avx512"}) {
    EXPECT_EQ(rows[real_or_twin].size(), rows["amx_emulated"].size());
    for (auto& [rest, row] : rows[real_or_twin]) {
      ASSERT_TRUE(rows["amx_emulated"].count(rest)) << rest;
      const gimbal_kernel_info& twin = rows["amx_emulated"][rest];
      EXPECT_EQ(row.in[0].dtypes, twin.in[0].dtypes);
      EXPECT_EQ(row.in[1].dtypes, twin.in[1].dtypes);
      EXPECT_EQ(row.limits[2].min, 16);
      EXPECT_EQ(row.limits[2].min, twin.limits[2].min);
      EXPECT_EQ(row.rank, twin.rank);
    }
  }
  // And the program itself has the real rows, and no emulated ones.
  auto product = open_device({"cpu", 0, true, ""});
  ASSERT_TRUE(product);
  size_t real = 0;
  for (size_t i = 0; i < product->device->kernel_count(); i++) {
    const std::string variant = variant_of(product->device->kernel(i).name);
    real += variant == "amx";
    EXPECT_EQ(variant.find("emulated"), std::string::npos) << product->device->kernel(i).name;
  }
  EXPECT_EQ(real, rows["amx"].size());
#endif
  // Every mat_mul of codes has a row by tiles, but for the second and third way to those of I2_S.
  for (auto& [rest, row] : rows["baseline"])
    if (OpKind(row.op) == OpKind::MatMul && row.in[1].dtypes != set_of(DType::F32) && rest != "mat_mul.tl1" &&
        rest != "mat_mul.tl2") {
      EXPECT_TRUE(rows["amx_emulated"].count(rest)) << rest;
    }
}

TEST(Amx, EveryRowAgreesWithTheReference) {
  auto device = open_emulated();
  std::map<std::string, int> ran;
  for (const Row& r : tile_rows(*device)) {
    auto report = check_kernel(*device, r.index);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GE(report->cases, 4) << r.variant << " " << r.rest << " " << report->not_run;
    for (const std::string& f : report->failures) ADD_FAILURE() << r.variant << " " << f;
    ran[r.variant]++;
  }
  for (auto& [variant, n] : ran)
    std::printf("cpu.%s.*: %d rows agree with the reference\n", variant.c_str(), n);
  EXPECT_EQ(ran["amx_emulated"], formats_of_codes());
}

// Memory with a guard page behind it: a byte read or written too far is a crash.
class Guarded {
 public:
  explicit Guarded(size_t n) : size_(n) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE)), room = (n + page - 1) / page * page;
    mapped_ = room + page;
    base_ = static_cast<uint8_t*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + room, page, PROT_NONE) != 0) std::abort();
    begin_ = base_ + room - n;
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  uint8_t* data() const { return begin_; }
  size_t size() const { return size_; }

 private:
  size_t size_, mapped_;
  uint8_t *base_, *begin_;
};

enum class Codes { Random, Highest, Lowest, Alternating };

// Activations as ops/quantize lays them out.
void make_activations(DType x, int columns, int rows, Codes kind, std::mt19937& random, uint8_t* to) {
  const Activations a = activations_of(x);
  float scale = 0;
  for (int64_t b = 0; b < int64_t(rows) * columns / a.block; b++, to += a.bytes) {
    int8_t code[256];
    for (int i = 0; i < a.block; i++)
      code[i] = int8_t(kind == Codes::Random    ? int(random() % 255) - 127
                       : kind == Codes::Highest ? 127
                       : kind == Codes::Lowest  ? -127
                                                : (i % 2 ? 127 : -127));
    const bool same = a.scale_of_row && b * a.block % columns != 0;
    if (!same) scale = float(random() % 1000 + 1) * 1e-4f;
    if (b % 37 == 5 && !a.scale_of_row) scale = 0;
    if (scale == 0) std::memset(code, 0, sizeof code);
    put_activations(a, scale, code, to);
  }
}

// One matrix product, its memory and its CpuTask.
struct Product {
  DType w;
  int columns, outputs, most_rows;
  Guarded weights, x, bias;
  gimbal_op op{};
  gimbal_value in[3] = {}, out{};

  Product(DType type, int k, int n, int rows, bool with_bias, Codes kind = Codes::Random)
      : w(type),
        columns(k),
        outputs(n),
        most_rows(rows),
        weights(size_t(cpu::packed_bytes(type, k, n))),
        x(size_t(row_bytes(activation_type(type), k) * rows)),
        bias(size_t(n) * 4) {
    std::mt19937 random(unsigned(k * 31 + n + int(type)));
    auto bits = [&] { return uint64_t(random()) << 32 | random(); };
    std::vector<uint8_t> dense(size_t(row_bytes(w, k) * n + tensor_tail_bytes(w)));
    random_blocks(w, int64_t(k) * n, dense.data(), bits);
    const float tensor_scale = 0.7f;
    if (tensor_tail_bytes(w)) std::memcpy(dense.data() + row_bytes(w, k) * n, &tensor_scale, 4);
    cpu::pack(w, k, n, dense.data(), weights.data(), 0, n);
    make_activations(activation_type(w), k, rows, kind, random, x.data());
    for (int i = 0; i < n; i++) {
      const float b = float(random() % 2000) * 0.01f - 10;
      std::memcpy(bias.data() + 4 * i, &b, 4);
    }
    op.inputs = with_bias ? 3 : 2;
    in[0].dim[0] = k, in[0].dim[1] = n, in[0].dtype = uint8_t(w);
    in[1].dim[0] = k, in[1].dim[1] = rows, in[2].dim[0] = n, out.dim[0] = n, out.dim[1] = rows;
  }

  // `step`: work items of one launch, as threads take them; 0: all of them.
  std::vector<uint32_t> compute(const CpuKernel& kernel, int rows, int64_t step = 0) const {
    Guarded y(size_t(rows) * size_t(outputs) * 4);
    CpuTask t{};
    t.op = &op, t.out = &out, t.y = y.data(), t.rows = rows;
    for (int i = 0; i < 3; i++) t.in[i] = &in[i];
    t.x[0] = weights.data(), t.x[1] = x.data(), t.x[2] = bias.data();
    const int64_t items = kernel.work(t).items;
    EXPECT_EQ(items, rows ? (outputs + 15) / 16 : 0);
    for (int64_t at = 0; at < items; at += step ? step : items)
      kernel.launch(t, at, step ? std::min(at + step, items) : items);
    std::vector<uint32_t> bits(size_t(rows) * size_t(outputs));
    if (!bits.empty()) std::memcpy(bits.data(), y.data(), bits.size() * 4);
    return bits;
  }
};

// Empty where `got` is the beginning of `want`.
std::string difference(const std::vector<uint32_t>& want, const std::vector<uint32_t>& got, int outputs) {
  for (size_t i = 0; i < got.size(); i++)
    if (want[i] != got[i]) {
      float a, b;
      std::memcpy(&a, &want[i], 4), std::memcpy(&b, &got[i], 4);
      return "row " + std::to_string(i / size_t(outputs)) + " output " + std::to_string(i % size_t(outputs)) +
             ": " + std::to_string(a) + " and " + std::to_string(b);
    }
  return "";
}

TEST(Amx, SameBitsForAnyNumberOfRows) {
  auto device = open_emulated();
  for (const Row& r : tile_rows(*device)) {
    const CpuKernel* other = baseline(*device, r.rest);
    ASSERT_NE(other, nullptr) << r.rest;
    const int block = std::max(info(r.weights()).block, info(activation_type(r.weights())).block);
    struct Size {
      int columns, outputs;
      bool bias;
    };
    // Of smaller blocks: a chunk of some blocks behind whole ones, and alone.
    std::vector<Size> sizes = {{256, 17, true}, {768, 16, false}};
    if (block == 128) sizes = {{128, 1, false}, {256 + 128, 17, true}, {512, 16, false}};
    if (block == 32) sizes = {{32, 1, false}, {256 + 96, 17, true}, {512, 16, false}};
    for (const Size& s : sizes) {
      const Product p(r.weights(), s.columns, s.outputs, 40, s.bias);
      const auto want = p.compute(*other, 40);
      for (int rows = 1; rows <= 40; rows++)
        EXPECT_EQ(difference(want, p.compute(*r.kernel, rows), s.outputs), "")
            << r.variant << " " << r.rest << " k=" << s.columns << " n=" << s.outputs << " rows=" << rows;
    }
  }
}

TEST(Amx, SameBitsForManyRowsAndUnits) {
  auto device = open_emulated();
  for (const Row& r : tile_rows(*device)) {
    const CpuKernel* other = baseline(*device, r.rest);
    const Product many_rows(r.weights(), 256, 5, 530, false), many_units(r.weights(), 512, 150, 18, true);
    const auto want = many_rows.compute(*other, 530);
    // Around slices of 256 rows.
    for (int rows : {255, 256, 257, 272, 273, 511, 513, 530})
      EXPECT_EQ(difference(want, many_rows.compute(*r.kernel, rows), 5), "")
          << r.variant << " " << r.rest << " rows=" << rows;
    const auto all = many_units.compute(*other, 18);
    for (int64_t step : {0, 1, 2, 3, 7})
      EXPECT_EQ(difference(all, many_units.compute(*r.kernel, 18, step), 150), "")
          << r.variant << " " << r.rest << " units at once: " << step;
  }
}

// Sums as large as they can be: codes, scales and minimums of all bits, against activations at their limits.
TEST(Amx, SameBitsAtTheLimits) {
  auto device = open_emulated();
  for (const Row& r : tile_rows(*device)) {
    const CpuKernel* other = baseline(*device, r.rest);
    const DType w = r.weights();
    const bool block256 = cpu::parts256(w).end != 0;
    for (Codes kind : {Codes::Highest, Codes::Lowest, Codes::Alternating})
      for (int pattern : {0x00, 0xff, 0x80, 0x7f}) {
        const Product p(w, 256, 16, 19, false, kind);
        uint8_t* packed = p.weights.data();
        const auto parts = cpu::parts256(w);
        const size_t codes =
            block256 ? 64 : size_t(cpu::layout_of(w).chunk_offset(256, 0) + cpu::layout_of(w).chunk_codes(8));
        std::memset(packed + codes, pattern, p.weights.size() - codes);
        // Six bits, as in the file; those of q2_k have four and lie beside the scales.
        if (block256)
          std::memset(packed + parts.minimums, pattern & 63, size_t(parts.nibbles - parts.minimums));
        EXPECT_EQ(difference(p.compute(*other, 19), p.compute(*r.kernel, 19), 16), "")
            << r.variant << " " << r.rest << " pattern " << pattern << " codes " << int(kind);
      }
  }
}

TEST(Amx, NoRowsAreNoWork) {
  auto device = open_emulated();
  for (const Row& r : tile_rows(*device)) {
    const Product p(r.weights(), 256, 5, 3, false);
    EXPECT_TRUE(p.compute(*r.kernel, 0).empty());
  }
}

// The kernels of the multiplications in the program for `rows` rows.
std::set<std::string> chosen(const Engine& e, const Bucket& bucket, std::string* why_not_tiles) {
  std::set<std::string> names;
  for (size_t i = 0; i < bucket.choices.size(); i++) {
    if (OpKind(bucket.program.ops[i].kind) != OpKind::MatMul) continue;
    names.insert(e.device->kernel(bucket.choices[i].kernel).name);
    for (const Rejected& r : rejections(bucket.program, bucket.program.ops[i], *e.device, {}))
      if (std::string(e.device->kernel(r.kernel).name) == "cpu.amx_emulated.mat_mul.q8_0" &&
          r.why.find("rows to be 16 or more") != std::string::npos)
        *why_not_tiles = r.why;
  }
  return names;
}

TEST(Amx, ServesPromptsAndLeavesSingleRowsToTheVectors) {
  const std::string path = golden_dir() + "/quant/q-q8_0.gguf";
  auto file = open_gguf(path);
  ASSERT_TRUE(file) << file.error().message;
  Engine e;
  e.file = std::make_unique<ModelSource>(std::move(*file));
  e.device = open_emulated();
  RunOptions run;
  run.context = 512, run.batch = 64;
  auto plan = make_model_plan(*e.file, *e.device, run);
  ASSERT_TRUE(plan) << plan.error().message;
  std::string why;
  for (const Bucket& b : plan->last().buckets) {
    const auto names = chosen(e, b, &why);
    bool tiles = false;
    for (const std::string& n : names) tiles |= variant_of(n).rfind("amx", 0) == 0;
    EXPECT_EQ(tiles, b.rows >= 16) << b.rows;
    if (b.rows == 1) { EXPECT_EQ(why, "needs rows to be 16 or more, but this op has 1"); }
  }
}

TEST(Amx, SameLogits) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 90; i++) tokens.push_back((i * 89 + 17) % 500);
  int models = 0;
  for (const std::string& path : golden_files("quant", ".gguf")) {
    EngineOptions plain;
    plain.device = "threads=2\nvariant=baseline", plain.run.context = 512, plain.run.logit_rows = 64;
    plain.run.batch = 64;
    auto want = open_engine(path, plain);
    if (!want) {  // a format that this version does not compute is another test's business
      EXPECT_EQ(want.error().code, Code::Unsupported) << want.error().message;
      continue;
    }
    auto file = open_gguf(path);
    ASSERT_TRUE(file);
    Engine e;
    e.file = std::make_unique<ModelSource>(std::move(*file));
    e.device = open_emulated();
    RunOptions run = plain.run;
    run.kernels.patterns = {"cpu.amx_emulated.*"};
    auto plan = make_model_plan(*e.file, *e.device, run);
    ASSERT_TRUE(plan) << plan.error().message;
    std::string ignored;
    bool tiles = false;
    for (const std::string& n : chosen(e, plan->last().buckets.back(), &ignored))
      tiles |= variant_of(n) == "amx_emulated";
    auto model = Model::load(std::move(*plan), *e.file);
    ASSERT_TRUE(model) << model.error().message;
    e.model = std::move(*model);
    if (!tiles) continue;  // weights of floats
    models++;
    EXPECT_EQ(want->all_logits(tokens), e.all_logits(tokens)) << path;
    EXPECT_EQ(want->all_logits(tokens), e.all_logits(tokens, 37)) << path << " in parts";
  }
  std::printf("%d models by emulated tiles\n", models);
  EXPECT_GE(models, 3);
}

}  // namespace
}  // namespace gimbal::test
