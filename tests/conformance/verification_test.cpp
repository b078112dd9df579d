// Kernels are checked before they are believed: a wrong one is set aside with its numbers, and the next one
// in rank takes its place, with the reason.
#include "conformance/verification.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/fake_backend.h"

namespace gimbal {
namespace {

using test::FakeCall;

// A device with two kernels that add: the fast one, wrong or not, and a slow one.
test::FakeSettings two_rows(bool fast_is_right) {
  test::FakeSettings s;
  s.rows = {test::fake_row("fake.slow.add.f32", OpKind::Add, 0),
            test::fake_row("fake.fast.add.f32", OpKind::Add, 5)};
  s.compute = [fast_is_right](const FakeCall& c) {
    const auto* a = reinterpret_cast<const float*>(c.x[0]);
    const auto* b = reinterpret_cast<const float*>(c.x[1]);
    auto* y = reinterpret_cast<float*>(c.y);
    const bool wrong = !fast_is_right && c.op.kernel == 1;
    for (int64_t i = 0; i < int64_t(c.out.dim[0]) * c.rows; i++) y[i] = a[i] + b[i] + (wrong ? 1.f : 0.f);
  };
  return s;
}

Program one_addition() {
  Program p;
  for (int i = 0; i < 3; i++) {
    gimbal_value v{};
    v.slot = uint32_t(Slot::Work), v.dtype = uint8_t(DType::F32), v.rank = 2, v.offset = uint64_t(i) * 64;
    v.bytes = 64, v.extent = GIMBAL_STEP_ROWS;
    v.dim[0] = 16, v.dim[1] = v.dim[2] = v.dim[3] = 1;
    p.values.push_back(v);
    p.info.push_back({"sum", Shape(DType::F32, {16, 1}), uint16_t(i)});
  }
  gimbal_op op{};
  op.kind = uint16_t(OpKind::Add), op.inputs = 2, op.in[1] = 1, op.outputs = 1, op.out[0] = 2;
  p.ops.push_back(op);
  return p;
}

TEST(Verification, ARightKernelIsCheckedOnceAndKept) {
  auto d = test::open_fake(two_rows(true));
  Program p = one_addition();
  auto choices = assign_kernels(p, *d, {});
  ASSERT_TRUE(choices) << choices.error().message;
  ASSERT_EQ(kernels_of(*choices), std::vector<size_t>{1});
  KernelVerdicts known;
  int asked = 0;
  auto count = [&](const char*) { return ++asked, true; };
  ASSERT_TRUE(verify_kernels(*d, kernels_of(*choices), known, count));
  EXPECT_TRUE(known["fake.fast.add.f32"].passed);
  EXPECT_GT(known["fake.fast.add.f32"].cases, 10);
  ASSERT_TRUE(verify_kernels(*d, kernels_of(*choices), known, count));
  EXPECT_EQ(asked, 1) << "what is known is not asked again";
  EXPECT_EQ(known.size(), 1u) << "what the model does not need is not run";
  EXPECT_TRUE(quarantined(known).empty());
}

TEST(Verification, AWrongKernelGivesWayToTheNextWithTheReason) {
  auto d = test::open_fake(two_rows(false));
  Program p = one_addition();
  KernelVerdicts known;
  KernelPreference wish;
  wish.patterns = {"fake.fast.*"};  // no wish brings back what gives wrong numbers
  for (int round = 0; round < 2; round++) {
    auto choices = assign_kernels(p, *d, wish);
    ASSERT_TRUE(choices) << choices.error().message;
    ASSERT_TRUE(verify_kernels(*d, kernels_of(*choices), known));
    wish.quarantined = quarantined(known);
  }
  ASSERT_EQ(wish.quarantined.size(), 1u);
  EXPECT_EQ(wish.quarantined[0].kernel, "fake.fast.add.f32");
  auto choices = assign_kernels(p, *d, wish);
  ASSERT_TRUE(choices);
  EXPECT_EQ((*choices)[0].kernel, 0u);
  const auto rejected = rejections(p, p.ops[0], *d, wish);
  ASSERT_EQ(rejected.size(), 1u);
  const std::string why = rejected[0].why;
  for (const char* words : {"quarantined", "wrong numbers", "expected"})
    EXPECT_NE(why.find(words), std::string::npos) << why;
  EXPECT_TRUE(known["fake.slow.add.f32"].passed);
}

TEST(Verification, WithoutAnotherKernelThereIsNone) {
  auto settings = two_rows(false);
  settings.rows.erase(settings.rows.begin());
  settings.compute = [](const FakeCall& c) {
    std::memset(c.y, 0xff, sizeof(float) * size_t(c.out.dim[0]) * size_t(c.rows));  // not a number
  };
  auto d = test::open_fake(std::move(settings));
  Program p = one_addition();
  KernelVerdicts known;
  ASSERT_TRUE(verify_kernels(*d, {0}, known));
  KernelPreference wish;
  wish.quarantined = quarantined(known);
  auto choices = assign_kernels(p, *d, wish);
  ASSERT_FALSE(choices);
  EXPECT_EQ(choices.error().code, Code::Unsupported);
  EXPECT_NE(choices.error().message.find("quarantined"), std::string::npos) << choices.error().message;
}

TEST(Verification, AKernelThatNoCaseReachesIsNotBelieved) {
  auto settings = two_rows(true);
  static constexpr gimbal_limit kWide[] = {{"width", GIMBAL_DIM, 0, 0, 1 << 20, 0, INT64_MAX}};
  limit(settings.rows[1], kWide);
  auto d = test::open_fake(std::move(settings));
  KernelVerdicts known;
  ASSERT_TRUE(verify_kernels(*d, {1}, known));
  const KernelVerdict& v = known["fake.fast.add.f32"];
  EXPECT_EQ(v.cases, 0);
  EXPECT_FALSE(v.passed);
  EXPECT_NE(v.wrong.find("no conformance case reaches it"), std::string::npos) << v.wrong;
  ASSERT_EQ(quarantined(known).size(), 1u);
}

TEST(Verification, CanBeCancelled) {
  auto d = test::open_fake(two_rows(true));
  KernelVerdicts known;
  auto ok = verify_kernels(*d, {0, 1}, known, [&](const char*) { return known.empty(); });
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, Code::Failed);
  EXPECT_EQ(known.size(), 1u);
}

}  // namespace
}  // namespace gimbal
