// The tests of tensors on a device of a backend; #define TESTED_BACKEND "vulkan" and TESTED_OPTIONS, as
// queue_on() takes them, before. Tensors on a device of any backend: other people's numbers (golden/tensors),
// the bits of the CPU for functions of floats of all sizes, for random views and random programs, eager and
// recorded, and what moves between host and device.
#pragma once
#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>

#include <gimbal/recorded.h>

#include "tensors/golden_judge.h"
#include "tensors/random_program.h"

namespace gimbal::test {

// `where`: a backend; with options behind it, "vulkan no_subgroups=1 staging=1".
inline std::string backend_of(const std::string& where) { return where.substr(0, where.find(' ')); }
// Strict but where a test says otherwise: nothing is computed elsewhere.
inline Queue queue_on(const std::string& where, QueueOptions o = {.strict = true}) {
  o.allow_software_devices = true;
  o.verify = false;  // each check compares by itself; emulated_verified_tensors_test has what verify does
  o.device_options = where.substr(std::min(where.size(), backend_of(where).size() + 1));
  std::replace(o.device_options.begin(), o.device_options.end(), ' ', '\n');
  auto q = open_queue(backend_of(where), o);
  if (!q) throw std::runtime_error(q.error().message);
  return *q;
}

// The cases of a family. No kernel of a GPU computes in f64: an error with this reason is right for those
// cases, and only for them.
inline void check_golden(const std::string& where, const std::string& family) {
  const Queue q = queue_on(where);
  const TensorCase file = read_json(golden_dir() + "/tensors/" + family + ".json");
  int failures = 0, n = 0, lacked = 0;
  for (const TensorCase& c : file["cases"]) {
    if (c["op"] == "threefry4x32") continue;  // of the cipher alone: uniform and normal are made of it
    n++;
    const TensorOutputs got = run_case(c, q);
    std::optional<Error> e = got.refused;
    for (const Tensor& t : got.out)
      if (!t.ok()) e = t.error();
    if (e && e->reason == "no-kernel" && e->message.find("does not take f64") != std::string::npos) {
      lacked++;
      continue;
    }
    const std::string wrong = judge_case(c, got);
    if (!wrong.empty() && failures++ < 12)
      ADD_FAILURE() << family << ": " << c["name"].get<std::string>() << " " << wrong;
  }
  EXPECT_GT(n, 2 * lacked);
  EXPECT_EQ(failures, 0) << "of " << n << " cases of " << family;
  std::printf("%s: %d cases, %d of f64 without a kernel\n", family.c_str(), n - lacked, lacked);
}

inline std::vector<std::byte> bits_of(const Tensor& t) {
  auto b = t.bytes();
  EXPECT_TRUE(b) << b.error().message;
  return b ? *b : std::vector<std::byte>();
}

// Edges and floats of all sizes.
inline std::vector<float> float_arguments(uint32_t seed, size_t count) {
  std::vector<float> x = {0,        1,   2,          0.5f,       1.5f,   2.5f,  3,     7,         0.3f,
                          88.8f,    104, 32768,      8388609,    1e-10f, 1e10f, 1e30f, 3e38f,     1e-38f,
                          INFINITY, NAN, 0.7071067f, 0.7071068f, 1e-30f, 20.5f, 0.66f, 3.1415927f};
  for (size_t i = 0, n = x.size(); i < n; i++) x.push_back(-x[i]);
  std::mt19937 random(seed);
  while (x.size() < count) {
    const uint32_t r = uint32_t(random());
    const float any = std::bit_cast<float>(uint32_t(random()));
    x.push_back(r % 2 ? any : float(int32_t(random())) * (r % 4 == 0 ? 1e-9f : 1e-8f));
  }
  std::shuffle(x.begin(), x.end(), random);
  return x;
}
// Of any class: f32 as they are, others converted.
inline std::vector<Tensor> map_operands(DType t, const Queue& q) {
  const size_t n = 8000;
  std::vector<float> a = float_arguments(1, n), b = float_arguments(2, n);
  for (size_t i = 0; i < n; i += 5) b[i] = float(int(i / 5 % 41) - 20) / 2;  // whole and half exponents
  std::mt19937_64 random(3);
  std::vector<int64_t> c, d;
  for (size_t i = 0; i < n; i++) {
    c.push_back(int64_t(random()) >> (random() % 64));
    d.push_back(i % 3 == 0 ? int64_t(i % 80) - 8 : int64_t(random()) >> (random() % 64));
  }
  const auto dims = Dims{int64_t(n)};
  if (t == DType::F32 || t == DType::F16 || t == DType::BF16)
    return {Tensor::from<float>(a, dims, q).to(t), Tensor::from<float>(b, dims, q).to(t)};
  return {Tensor::from<int64_t>(c, dims, q).to(t), Tensor::from<int64_t>(d, dims, q).to(t)};
}

struct Function {
  const char* name;
  int inputs;
  std::string_view classes;  // as in ops/maps.def
};
inline constexpr Function kFunctions[] = {
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps) {name, inputs, #classes},
#include "ops/maps.def"
};
inline std::vector<DType> formats_of(const Function& f) {
  std::vector<DType> all;
  for (char c : f.classes) {
    if (c == 'F') all.insert(all.end(), {DType::F32, DType::F16, DType::BF16});
    if (c == 'I') all.insert(all.end(), {DType::U8, DType::I16, DType::I32, DType::U32, DType::I64});
    if (c == 'B') all.push_back(DType::Bool);
  }
  return all;
}

// Every function of ops/maps.def on every format that a GPU computes in: dense, and with one operand turned
// round.
inline void check_map_bits(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  for (const Function& f : kFunctions)
    for (DType t : formats_of(f)) {
      std::vector<std::byte> bits[2];
      for (const Queue& at : {cpu, q}) {
        const std::vector<Tensor> in = map_operands(t, at);
        std::vector<Tensor> all;
        if (f.inputs == 2) {
          all = {in[0].map(f.name, in[1]), in[1].flip(0).map(f.name, in[0]), in[0].map(f.name, in[0]),
                 in[0].map(f.name, Scalar(3)), map(f.name, Scalar(3), in[1])};
        } else if (f.name == std::string_view("affine")) {
          all = {in[0].affine(0.7, -1.25), in[0].flip(0).affine(-3, 5)};
        } else if (f.name == std::string_view("elu")) {
          all = {in[0].elu(0.7)};
        } else if (f.name == std::string_view("powf")) {
          continue;  // no call: pow of a number is pow
        } else {
          all = {in[0].map(f.name), in[1].flip(0).map(f.name)};
        }
        for (const Tensor& y : all) {
          const auto b = bits_of(y);
          bits[at.is_cpu() ? 0 : 1].insert(bits[at.is_cpu() ? 0 : 1].end(), b.begin(), b.end());
        }
      }
      ASSERT_EQ(bits[0].size(), bits[1].size());
      size_t wrong = 0, first = 0;
      for (size_t i = 0; i < bits[0].size(); i++)
        if (bits[0][i] != bits[1][i] && wrong++ == 0) first = i;
      // Known and not explained: on Mesa's software device one of 40,000 quotients of f32 differs in one
      // byte.
      const bool mesa = q.name().find("llvmpipe") != std::string::npos;
      if (mesa && f.name == std::string_view("floor_div") && t == DType::F32 && wrong == 1) {
        std::printf("%s: floor_div of f32 differs at byte %zu: %u, on the CPU %u, as known\n", where.c_str(),
                    first, unsigned(bits[1][first]), unsigned(bits[0][first]));
        continue;
      }
      EXPECT_EQ(wrong, 0u) << "at byte " << first << ": " << f.name << " of " << name_of(t)
                           << ": bytes other than the CPU's, of " << bits[0].size();
    }
}

// Random programs, call by call and recorded, on the device and on the CPU: the same bits.
inline void check_random_programs(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  int values = 0;
  for (uint64_t seed = 0; seed < (fewer_cases() ? 10 : 40); seed++) {
    const RandomProgram program(seed);
    const TensorFunction f = [&](std::span<const Tensor> in) { return program.run(in); };
    const std::vector<Tensor> want = program.run(program.arguments(seed, cpu));
    const std::vector<Tensor> in = program.arguments(seed, q), eager = program.run(in);
    auto later = record(q, f).run(in);
    ASSERT_TRUE(later) << later.error().message;
    ASSERT_EQ(eager.size(), want.size());
    ASSERT_EQ(later->size(), want.size());
    for (size_t i = 0; i < want.size(); i++) {
      ASSERT_EQ(eager[i].dims(), want[i].dims()) << "program " << seed << ", result " << i;
      EXPECT_EQ(bits_of(eager[i]), bits_of(want[i])) << "program " << seed << ", result " << i;
      EXPECT_EQ(bits_of((*later)[i]), bits_of(want[i])) << "recorded program " << seed << ", result " << i;
      values++;
    }
  }
  EXPECT_GT(values, 40);
}

// Rows that are longer than a chunk, than 1,024 chunks, and not whole ones; sums of columns; orders of long
// rows.
inline void check_long_rows(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  // Mesa's llvmpipe 22.3 ends loops after 65,535 rounds, so longer rows are not computed to their ends there.
  const bool short_loops = backend_of(where) == "vulkan" && q.name().find("llvmpipe") != std::string::npos;
  if (short_loops) std::printf("%s: rows of at most 5,000 values on %s\n", where.c_str(), q.name().c_str());
  for (int64_t n : {1, 15, 1023, 1024, 1025, 5000, 1048575, 1048576, 1048577, 1200000}) {
    if (n > 5000 && (short_loops || where != backend_of(where)))
      break;  // options choose other forms of the same kernels, and slow checks
    std::vector<std::vector<std::byte>> bits[2];
    for (const Queue& at : {cpu, q}) {
      const Tensor x = Generator(7, at).normal({n}), wide = x.broadcast_to({3, n}).t();
      for (const Tensor& y :
           {x.sum(), x.mean(), x.var(), x.flip(0).sum(), x.max(), x.argmin(), wide.sum({0}), x.softmax(0),
            x.cumsum(0), x.to(DType::F16).sum(), (x * 100).to(DType::I16).sum()})
        bits[at.is_cpu() ? 0 : 1].push_back(bits_of(y));
    }
    for (size_t i = 0; i < bits[0].size(); i++)
      EXPECT_EQ(bits[0][i], bits[1][i]) << "result " << i << " of " << n;
  }
}

// Rows of lengths around the runs that are merged, with many equal values.
inline void check_orders(const std::string& where) {
  const Queue q = queue_on(where), cpu = queue_on("cpu");
  for (const int64_t n : {1, 64, 65, 129, 300, 4097, 300000}) {
    if (n > 5000 && where != backend_of(where)) break;  // slow checks
    std::vector<std::vector<std::byte>> bits[2];
    for (const Queue& at : {cpu, q}) {
      const bool is_long = n > 5000;
      const Tensor x = (Generator(7, at).normal({is_long ? 1 : 2, n}) * (is_long ? 1000 : 20)).map("round");
      for (const DType type : {DType::F32, DType::I64, DType::I16, DType::U8})
        for (const bool falling : {false, true}) {
          if (n != 300 && type != DType::F32) continue;
          const Tensor t = x.to(type);
          auto& found = bits[at.is_cpu() ? 0 : 1];
          if (!is_long || falling) found.push_back(bits_of(t.argsort(1, falling)));
          if (!is_long || !falling) found.push_back(bits_of(t.sort(1, falling)));
          if (n == 300) found.push_back(bits_of(t.t().sort(0, falling)));
        }
    }
    for (size_t i = 0; i < bits[0].size(); i++)
      EXPECT_EQ(bits[0][i], bits[1][i]) << "result " << i << " of " << n;
  }
}

// One upload for a tensor and one download for its values; what the device ran, by name.
inline void check_counts(const std::string& where) {
  const Queue q = queue_on(where);
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2}, q);
  const auto before = q.counts();
  const Tensor y = (x.matmul(x.t()) + x).map("gelu").softmax(-1);
  const auto between = q.counts();
  EXPECT_EQ(between.uploads, before.uploads) << "operands stay on the device";
  EXPECT_EQ(between.downloads, before.downloads);
  ASSERT_TRUE(y.values<float>());
  EXPECT_EQ(q.counts().downloads, before.downloads + 1);
  EXPECT_EQ(q.counts().uploads, 1u);
  uint64_t runs = 0;
  for (const auto& [kernel, times] : q.receipt()) {
    EXPECT_EQ(kernel.rfind(backend_of(where) + ".gpu.", 0), 0u) << kernel;
    runs += times;
  }
  EXPECT_EQ(runs, 4u);
}

// An operation without a kernel on the device is an error on a strict queue, and in recorded functions of
// every queue.
inline void check_what_is_missing(const std::string& where) {
  const Queue q = queue_on(where);
  const Tensor x = Tensor::from<float>(std::vector<float>(256, 1), {1, 256}, q);
  for (const Tensor& y : {x.to(DType::F64).map("exp"), x.to(DType::F64).sum()}) {
    ASSERT_FALSE(y.ok());
    EXPECT_EQ(y.error().reason, "no-kernel") << y.error().message;
    EXPECT_NE(y.error().message.find(backend_of(where)), std::string::npos) << y.error().message;
  }
  EXPECT_TRUE(q.fallbacks().empty());
  const Queue soft = queue_on(where, {});
  const auto f = record(
      soft, [](std::span<const Tensor> in) { return std::vector<Tensor>{in[0].to(DType::F64).map("exp")}; });
  const auto y = f.run(std::vector<Tensor>{x.to(soft)});
  ASSERT_FALSE(y);
  EXPECT_EQ(y.error().reason, "no-kernel") << y.error().message;
  EXPECT_TRUE(soft.fallbacks().empty());
}

// On other queues the CPU computes it, with its bits, and the queue says so.
inline void check_fallbacks(const std::string& where) {
  std::vector<std::string> told;
  const Queue cpu = queue_on("cpu");
  const Queue q = queue_on(where, {.on_fallback = [&](const Fallback& f) { told.push_back(f.what); }});
  const Tensor x = Generator(8, cpu).normal({3, 2, 256}), there = x.to(q);
  const std::vector<Tensor (*)(const Tensor&)> lacking = {
      [](const Tensor& in) { return in.to(DType::F64).map("exp"); },
      [](const Tensor& in) { return in.to(DType::F64).flip(1).map("tanh"); },
      [](const Tensor& in) { return in.to(DType::F64).sum({2}) * 3; },
  };
  for (int round = 0; round < 2; round++)
    for (const auto f : lacking) {
      const Tensor got = f(there), want = f(x);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_TRUE(got.queue().same_as(q));
      EXPECT_EQ(bits_of(got), bits_of(want));
    }
  const std::vector<std::string> expected = {"map of f64 to f64", "reduce of f64 to f64"};
  EXPECT_EQ(told, expected);
  const auto all = q.fallbacks();
  ASSERT_EQ(all.size(), expected.size());
  for (size_t i = 0; i < all.size(); i++) {
    EXPECT_EQ(all[i].what, expected[i]);
    EXPECT_EQ(all[i].instead, "cpu:0");
    EXPECT_EQ(all[i].why.reason, "no-kernel");
    EXPECT_NE(all[i].why.message.find("device " + q.location() + " has no kernel"), std::string::npos)
        << all[i].why.message;
  }
  bool by_the_cpu = false;
  for (const auto& [kernel, times] : q.receipt()) by_the_cpu |= kernel.rfind("cpu.", 0) == 0;
  EXPECT_TRUE(by_the_cpu);
}

namespace {

class TensorsOnDevice : public testing::TestWithParam<const char*> {
 protected:
  std::string where() const { return TESTED_BACKEND + std::string(*GetParam() ? " " : "") + GetParam(); }
};
TEST_P(TensorsOnDevice, AgreeWithOtherPeoplesNumbers) {
  for (const char* family :
       {"cast", "maps", "compare", "promote", "where", "moves", "gather", "views", "errors", "reductions",
        "softmax", "cumsum", "sort", "matmul", "conv", "pool", "upsample", "random"})
    check_golden(where(), family);
}
TEST_P(TensorsOnDevice, FunctionsHaveTheBitsOfTheCpu) { check_map_bits(where()); }
TEST_P(TensorsOnDevice, RandomProgramsHaveTheBitsOfTheCpu) { check_random_programs(where()); }
TEST_P(TensorsOnDevice, LongRowsHaveTheBitsOfTheCpu) { check_long_rows(where()); }
TEST_P(TensorsOnDevice, OrderValuesAsTheCpuDoes) { check_orders(where()); }
TEST_P(TensorsOnDevice, MoveNothingBetweenOperations) { check_counts(where()); }
TEST_P(TensorsOnDevice, SayWhatTheyLack) { check_what_is_missing(where()); }
TEST_P(TensorsOnDevice, LetTheCpuComputeWhatTheyLack) { check_fallbacks(where()); }
INSTANTIATE_TEST_SUITE_P(Options, TensorsOnDevice, testing::Values(TESTED_OPTIONS));

}  // namespace
}  // namespace gimbal::test
