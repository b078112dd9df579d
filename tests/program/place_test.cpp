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

}  // namespace
}  // namespace gimbal
