// Which kernel is chosen, and that the reasons given are the true ones.
#include "program/place.h"

#include <gtest/gtest.h>

#include "program/builder.h"
#include "support/fake_backend.h"

namespace gimbal {
namespace {

using test::fake_row;

class Place : public testing::Test {
 protected:
  void SetUp() override {
    test::FakeSettings s;
    s.features = 1;  // wings
    s.rows = {fake_row("fake.slow.add.f32", OpKind::Add, 1), fake_row("fake.good.add.f32", OpKind::Add, 5),
              fake_row("fake.wheels.add.f32", OpKind::Add, 9), fake_row("fake.free.add.f32", OpKind::Add, 7),
              fake_row("fake.slow.swiglu.f32", OpKind::SwiGlu, 1)};
    s.rows[2].needs = 3;
    s.rows[3].numerics = GIMBAL_FAST;
    device = test::open_fake(s);
    ProgramBuilder b(*device, 4, 1);
    b.scope("blk.0");
    Value x = b.rows_input("x", DType::F32, 8);
    b.output(b.swiglu(b.add(x, x), x));
    program = *std::move(b).finish();
  }
  std::string name(size_t row) { return device->kernel(row).name; }
  // The reason why a row was not taken for the first op.
  std::string why(size_t row, const KernelPreference& wish = {}) const {
    for (const Rejected& r : rejections(program, program.ops[0], *device, wish))
      if (r.kernel == row) return r.why;
    return "taken";
  }
  std::unique_ptr<Device> device;
  Program program;
};

TEST_F(Place, TheHighestRankThatFitsIsTaken) {
  auto c = assign_kernels(program, *device, {});
  ASSERT_TRUE(c) << c.error().message;
  ASSERT_EQ(c->size(), 2u);
  const Choice& add = (*c)[0];
  EXPECT_EQ(name(add.kernel), "fake.good.add.f32");
  EXPECT_EQ(program.ops[0].kernel, add.kernel) << "what is reported is what runs";
  EXPECT_EQ(why_chosen(add, {}), "the highest rank that fits");
  EXPECT_EQ(why_chosen((*c)[1], {}), "the only kernel that fits");
  const auto rejected = rejections(program, program.ops[0], *device, {});
  ASSERT_EQ(rejected.size(), 3u) << "rows of other ops are not mentioned";
  EXPECT_EQ(rejected[0].kernel, 2u) << "best rank first";
  EXPECT_EQ(rejected[2].kernel, 0u);
  EXPECT_NE(why(0).find("ranks lower (1 against 5)"), std::string::npos) << why(0);
  EXPECT_NE(why(2).find("needs wheels"), std::string::npos) << why(2);
  EXPECT_EQ(why(2).find("wings"), std::string::npos) << "only what is missing is named";
  EXPECT_NE(why(3).find("exact results"), std::string::npos) << why(3);
}

TEST_F(Place, FastRowsCompeteWhenAllowed) {
  auto c = assign_kernels(program, *device, {{}, true, false});
  ASSERT_TRUE(c);
  EXPECT_EQ(name((*c)[0].kernel), "fake.free.add.f32");
}

TEST_F(Place, PreferencesWinInTheirOrder) {
  const KernelPreference slow{{"fake.slow.*"}, false, true};
  auto one = assign_kernels(program, *device, slow);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(name((*one)[0].kernel), "fake.slow.add.f32");
  EXPECT_EQ(why_chosen((*one)[0], slow), "matches the preference 'fake.slow.*'");
  EXPECT_NE(why(1, slow).find("another kernel is preferred"), std::string::npos);

  auto order = assign_kernels(program, *device, {{"*.nothing.*", "*good*", "*slow*"}, false, true});
  ASSERT_TRUE(order);
  EXPECT_EQ(name((*order)[0].kernel), "fake.good.add.f32");

  // Several rows match one pattern: the rank decides among them.
  auto all = assign_kernels(program, *device, {{"fake.*"}, true, true});
  ASSERT_TRUE(all);
  EXPECT_EQ(name((*all)[0].kernel), "fake.free.add.f32");

  // A preference does not make a row fit.
  const KernelPreference wheels{{"fake.wheels.*"}, false, false};
  auto unfit = assign_kernels(program, *device, wheels);
  ASSERT_TRUE(unfit);
  EXPECT_EQ(name((*unfit)[0].kernel), "fake.good.add.f32");
  EXPECT_EQ(why_chosen((*unfit)[0], wheels),
            "the highest rank that fits; no preferred kernel computes this op");
}

TEST_F(Place, StrictRefusesWhatNoPatternCovers) {
  auto c = assign_kernels(program, *device, {{"fake.good.*"}, false, true});  // no swiglu among them
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Code::NoBackend);
  for (const char* word : {"blk.0.swiglu", "fake.slow.swiglu.f32"})
    EXPECT_NE(c.error().message.find(word), std::string::npos) << c.error().message;
}

TEST_F(Place, AnOpThatNothingComputesIsNamedWithTheBestReason) {
  test::FakeSettings s;
  s.rows = {fake_row("fake.a.swiglu.f32", OpKind::SwiGlu), fake_row("fake.wheels.add.f32", OpKind::Add, 9)};
  s.rows[1].needs = 2;
  device = test::open_fake(s);
  auto c = assign_kernels(program, *device, {});
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Code::Unsupported);
  for (const char* word :
       {"fake:0", "blk.0.add", "add of f32 with f32", "fake.wheels.add.f32", "needs wheels"})
    EXPECT_NE(c.error().message.find(word), std::string::npos) << c.error().message;
}

// Products of 1024 columns and 1024 outputs, 100 rows: three exact rows of one rank each, a fourth, a fast
// one.
class Measured : public testing::Test {
 protected:
  void SetUp() override {
    test::FakeSettings s;
    for (auto [name, rank] : {std::pair("fake.a.mat_mul.f32", 9), std::pair("fake.b.mat_mul.f32", 7),
                              std::pair("fake.c.mat_mul.f32", 5), std::pair("fake.d.mat_mul.f32", 3),
                              std::pair("fake.free.mat_mul.f32", -1)}) {
      s.rows.push_back(claims(name, OpKind::MatMul, set_of(DType::F32), GIMBAL_DENSE));
      s.rows.back().in[1] = claim_of(set_of(DType::F32)), s.rows.back().rank = int16_t(rank);
    }
    s.rows.back().numerics = GIMBAL_FAST;
    device = test::open_fake(s);
    program = product(1024, 1024, 100);
  }
  Program product(int columns, int outputs, int rows) const {
    ProgramBuilder b(*device, rows, 1);
    b.output(b.linear(b.matrix("w", Shape(DType::F32, {columns, outputs})),
                      b.rows_input("x", DType::F32, columns)));
    return *std::move(b).finish();
  }
  // The kernel's letter and the reason.
  std::string chosen(const KernelPreference& wish) {
    auto c = assign_kernels(program, *device, wish);
    if (!c) return c.error().message;
    return std::string(device->kernel((*c)[0].kernel).name).substr(5, 1) + ": " + why_chosen((*c)[0], wish);
  }
  std::string why_not_taken(size_t row, const KernelPreference& wish) const {
    for (const Rejected& r : rejections(program, program.ops[0], *device, wish))
      if (r.kernel == row) return r.why;
    return "taken";
  }
  KernelPreference wish(double a, double b, double c, double fast = 0) const {
    KernelPreference w;
    MeasuredProduct m{"fake:0", DType::F32, 1024, 64, {}};
    m.times = {{"fake.b.mat_mul.f32", b}, {"fake.a.mat_mul.f32", a}, {"fake.c.mat_mul.f32", c}};
    if (fast > 0) m.times.push_back({"fake.free.mat_mul.f32", fast});
    w.measured = {MeasuredProduct{"fake:0", DType::F32, 1024, 1, {}}, m};
    return w;
  }
  std::unique_ptr<Device> device;
  Program program;
};

TEST_F(Measured, TheFastestTakesThePlaceOfTheHighestRank) {
  KernelPreference w = wish(1.31, 1, 2);
  EXPECT_EQ(chosen(w), "b: measured: 1.31x of fake.a.mat_mul.f32");
  EXPECT_EQ(why_not_taken(0, w), "fits, but measured slower (0.76x)");
  EXPECT_EQ(why_not_taken(2, w), "fits, but measured slower (0.50x)");
  EXPECT_EQ(why_not_taken(3, w), "fits, but ranks lower (3 against 7)") << "was not measured";
  EXPECT_EQ(chosen(wish(1, 2, 1.5)), "a: measured: 1.50x of fake.c.mat_mul.f32");
  EXPECT_EQ(chosen(wish(3, 2, 1)), "c: measured: 3.00x of fake.a.mat_mul.f32");
}

TEST_F(Measured, NoiseDecidesNothing) {
  KernelPreference w = wish(1.04, 1, 2);
  EXPECT_EQ(chosen(w), "a: measured: 0.96x of fake.b.mat_mul.f32, too close to change the rank's choice");
  EXPECT_EQ(why_not_taken(1, w), "fits, and measured hardly faster (1.04x)");
  EXPECT_EQ(chosen(wish(1.06, 1, 2)).substr(0, 1), "b");
}

TEST_F(Measured, OnlyWhatFitsCounts) {
  EXPECT_EQ(chosen(wish(2, 1.9, 1.8, 1)).substr(0, 1), "c") << "fast rows are not asked for";
  KernelPreference w = wish(2, 1.9, 1.8, 1);
  w.allow_fast = true;
  EXPECT_EQ(chosen(w), "f: measured: 2.00x of fake.a.mat_mul.f32");
  w.quarantined = {{"fake.free.mat_mul.f32", "wrong numbers"}, {"fake.c.mat_mul.f32", "wrong numbers"}};
  EXPECT_EQ(chosen(w), "b: measured: 1.05x of fake.a.mat_mul.f32");
  w.quarantined.push_back({"fake.a.mat_mul.f32", "wrong numbers"});
  EXPECT_EQ(chosen(w), "b: the highest rank that fits") << "nothing is left to compare with";
  KernelPreference unmeasured;
  unmeasured.allow_fast = true;
  EXPECT_EQ(chosen(unmeasured), "a: the highest rank that fits") << "a fast row of a low rank";
}

TEST_F(Measured, PatternsRule) {
  KernelPreference w = wish(2, 1, 3);
  w.patterns = {"fake.c.*"};
  EXPECT_EQ(chosen(w), "c: matches the preference 'fake.c.*'");
  EXPECT_EQ(why_not_taken(1, w), "fits, but another kernel is preferred");
  w.patterns = {"*"};  // as if nothing had been measured
  EXPECT_EQ(chosen(w), "a: matches the preference '*'");
  EXPECT_EQ(why_not_taken(1, w), "fits, but ranks lower (7 against 9)");
  w.patterns = {"*.nothing.*"};
  EXPECT_EQ(chosen(w).substr(0, 1), "b");
  w.strict = true;
  EXPECT_NE(chosen(w).find("no preferred kernel"), std::string::npos);
}

TEST_F(Measured, OfThisProductOnThisDevice) {
  KernelPreference w = wish(2, 1, 3);
  w.measured[1].device = "fake:1";
  EXPECT_EQ(chosen(w), "a: the highest rank that fits");
  w.measured[1].device = "fake:0", w.measured[1].format = DType::F16;
  EXPECT_EQ(chosen(w), "a: the highest rank that fits");
  w = wish(2, 1, 3);
  for (auto [rows, letter] :
       {std::pair(33, "b"), std::pair(512, "b"), std::pair(32, "a"), std::pair(1, "a")}) {
    program = product(1024, 2048, rows);
    EXPECT_EQ(chosen(w).substr(0, 1), letter) << rows << " rows";
  }
  program = product(1024, 1000, 100);
  EXPECT_EQ(chosen(w), "a: the highest rank that fits") << "too small to be worth it";
  EXPECT_TRUE(rivals(program, program.ops[0], *device, {}).empty());
}

TEST_F(Measured, RivalsAreTheBestExactRowsAndFastOnesThatMayBeTaken) {
  const gimbal_op& op = program.ops[0];
  EXPECT_EQ(rivals(program, op, *device, {}), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(rivals(program, op, *device, {{}, true, false}), (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(rivals(program, op, *device, {{}, false, false, {{"fake.b.mat_mul.f32", "wrong"}}}),
            (std::vector<size_t>{0, 2, 3}));
  EXPECT_TRUE(rivals(program, op, *device, {{"fake.b.*"}, false, false}).empty());
  KernelPreference few{{}, false, false, {{"fake.c.mat_mul.f32", "wrong"}, {"fake.d.mat_mul.f32", "wrong"}}};
  EXPECT_EQ(rivals(program, op, *device, few), (std::vector<size_t>{0, 1})) << "two can be compared";
  few.quarantined.push_back({"fake.b.mat_mul.f32", "wrong"});
  EXPECT_TRUE(rivals(program, op, *device, few).empty()) << "one has no rival";
}

}  // namespace
}  // namespace gimbal
