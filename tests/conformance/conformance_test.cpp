// The examiner is examined: kernels that are wrong in one deliberate way each must be caught, and a right one
// must pass.
#include "conformance/conformance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "discovery/registry.h"
#include "ops/op_def.h"
#include "support/fake_backend.h"

namespace gimbal {
namespace {

using test::FakeCall;

const float* in(const FakeCall& c, size_t i) { return reinterpret_cast<const float*>(c.x[i]); }
float* out(const FakeCall& c) { return reinterpret_cast<float*>(c.y); }
int64_t width(const FakeCall& c) { return c.out.dim[0]; }
int64_t count(const FakeCall& c) { return width(c) * c.rows; }

void right(const FakeCall& c) {
  for (int64_t i = 0; i < count(c); i++) out(c)[i] = in(c, 0)[i] + in(c, 1)[i];
}

KernelReport examine(std::function<void(const FakeCall&)> compute, OpKind op = OpKind::Add) {
  test::FakeSettings s;
  s.rows = {test::fake_row("fake.op.f32", op)};
  s.compute = std::move(compute);
  auto device = test::open_fake(s);
  auto report = check_kernel(*device, 0);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : KernelReport{};
}

TEST(Conformance, ARightKernelPasses) {
  const KernelReport r = examine(right);
  EXPECT_GT(r.cases, 10);
  EXPECT_EQ(r.failed, 0) << r.failures[0];
  EXPECT_GT(r.worst, 0.5) << "one rounding is allowed, and over so many sums some come close to half a unit";
  EXPECT_EQ(r.not_run, "");
  EXPECT_FALSE(r.unreachable);
}

struct Mutant {
  const char* name;
  std::function<void(const FakeCall&)> compute;
  const char* words;  // in the report
};

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      {"leaves out the last value of a row",
       [](const FakeCall& c) {
         for (int64_t r = 0; r < c.rows; r++)
           for (int64_t i = 0; i + 1 < width(c); i++)
             out(c)[r * width(c) + i] = in(c, 0)[r * width(c) + i] + in(c, 1)[r * width(c) + i];
       },
       "expected"},
      {"takes the last value of a row twice",
       [](const FakeCall& c) {
         right(c);
         if (width(c) > 1) out(c)[width(c) - 1] = out(c)[width(c) - 2];
       },
       "expected"},
      {"is wrong in the third row only",
       [](const FakeCall& c) { right(c), c.rows > 2 ? out(c)[2 * width(c)] += 1e-3f : 0; }, "expected"},
      {"forgets what is left after whole vectors of 16",
       [](const FakeCall& c) {
         for (int64_t i = 0; i < count(c) / 16 * 16; i++) out(c)[i] = in(c, 0)[i] + in(c, 1)[i];
       },
       "expected"},
      {"is off by one unit in the last place, twice",
       [](const FakeCall& c) {
         right(c);
         for (int k = 0; k < 2; k++) out(c)[0] = std::nextafter(out(c)[0], 1e9f);
       },
       "expected"},
      {"gives a NaN",
       [](const FakeCall& c) { right(c), out(c)[count(c) - 1] = std::numeric_limits<float>::quiet_NaN(); },
       "nan"},
      {"gives an infinity", [](const FakeCall& c) { right(c), out(c)[0] = INFINITY; }, "inf"},
      {"writes one byte behind its rows", [](const FakeCall& c) { right(c), c.y[count(c) * 4] = 0; },
       "behind"},
      {"computes all rows there is room for",
       [](const FakeCall& c) {
         for (int64_t i = 0; i < width(c) * c.out.dim[1]; i++) out(c)[i] = in(c, 0)[i] + in(c, 1)[i];
       },
       "behind"},
      {"writes one byte before its output", [](const FakeCall& c) { right(c), c.y[-1] = 0; }, "before"},
      {"writes to its input", [](const FakeCall& c) { right(c), const_cast<unsigned char*>(c.x[1])[3] ^= 1; },
       "step data"},
      {"does nothing", [](const FakeCall&) {}, "expected"},
  };
  return all;
}

TEST(Conformance, EveryMutantIsCaught) {
  for (const Mutant& m : mutants()) {
    const KernelReport r = examine(m.compute);
    EXPECT_GT(r.failed, 0) << "not caught: a kernel that " << m.name;
    ASSERT_EQ(r.failures.size(), size_t(r.failed));
    bool said = false;
    for (const std::string& f : r.failures) said |= f.find(m.words) != std::string::npos;
    EXPECT_TRUE(said) << m.name << ": " << r.failures[0];
    EXPECT_EQ(r.failures[0].rfind("add f32 width=", 0), 0u) << "the case is named: " << r.failures[0];
  }
}

// For an op with a tolerance: what is inside it passes, what is outside does not.
TEST(Conformance, TheToleranceOfSumsIsTight) {
  auto norm = [](double error) {
    return [error](const FakeCall& c) {
      for (int64_t r = 0; r < c.rows; r++) {
        const float* x = in(c, 0) + r * width(c);
        double squares = 0;
        for (int64_t i = 0; i < width(c); i++) squares += double(x[i]) * x[i];
        const double scale = 1 / std::sqrt(squares / double(width(c)) + double(c.op.param.f[0]));
        for (int64_t i = 0; i < width(c); i++)
          out(c)[r * width(c) + i] = float(x[i] * scale * in(c, 1)[i] * (1 + error));
      }
    };
  };
  const KernelReport good = examine(norm(0), OpKind::RmsNorm);
  EXPECT_GT(good.cases, 10);
  EXPECT_EQ(good.failed, 0) << good.failures[0];
  EXPECT_LT(good.worst, 0.2);
  const KernelReport bad = examine(norm(2e-5), OpKind::RmsNorm);
  EXPECT_EQ(bad.failed, bad.cases) << "a relative error of 2e-5 is far more than rounding";
}

// What the CPU's best kernels err by, of what each op's definition allows: no tolerance is so wide that an
// error a hundred times as large would pass, or so would one a hundred times as wide.
TEST(Conformance, TheToleranceOfEveryOpIsTight) {
  auto opened = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(opened) << opened.error().message;
  const Device& cpu = *opened->device;
  std::map<OpKind, int> best;  // rank of a kernel
  auto usable = [&](const gimbal_kernel_info& row) { return !(row.needs & ~cpu.describe().features); };
  for (size_t k = 0; k < cpu.kernel_count(); k++)
    if (const gimbal_kernel_info& row = cpu.kernel(k); usable(row)) {
      int& rank = best.try_emplace(OpKind(row.op), row.rank).first->second;
      rank = std::max<int>(rank, row.rank);
    }
  std::set<OpKind> rounding;
  for (size_t k = 0; k < cpu.kernel_count(); k++) {
    const gimbal_kernel_info& row = cpu.kernel(k);
    const OpKind op{row.op};
    if (!usable(row) || row.rank != best[op]) continue;
    const std::vector<Case> all = cases(op, formats_of(row).front());
    ASSERT_FALSE(all.empty()) << row.name;
    std::vector<Shape> shapes;
    for (const CaseInput& i : all[0].inputs) shapes.push_back(i.shape);
    if (tolerance(all[0].kind, shapes) == 0) continue;  // exact
    rounding.insert(op);
    auto report = check_kernel(cpu, k);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->worst, 0.02) << row.name;
    EXPECT_LE(report->worst, 1) << row.name;
  }
  EXPECT_GE(rounding.size(), 8u);
}

TEST(Conformance, ARowThatNoCaseReachesOrTheDeviceLacksIsSaid) {
  test::FakeSettings s;
  s.rows = {test::fake_row("fake.add.f32", OpKind::Add), test::fake_row("fake.wheels.add.f32", OpKind::Add),
            test::fake_row("fake.add.wide", OpKind::Add)};
  s.rows[1].needs = 2;
  static constexpr gimbal_limit kWide[] = {{"width", GIMBAL_DIM, 0, 0, 1 << 20, 0, INT64_MAX}};
  limit(s.rows[2], kWide);
  s.compute = right;
  auto device = test::open_fake(s);
  auto lacks = check_kernel(*device, 1), wide = check_kernel(*device, 2);
  ASSERT_TRUE(lacks && wide);
  EXPECT_EQ(lacks->cases, 0);
  EXPECT_NE(lacks->not_run.find("needs wheels"), std::string::npos) << lacks->not_run;
  EXPECT_FALSE(lacks->unreachable);
  EXPECT_EQ(wide->cases, 0);
  EXPECT_TRUE(wide->unreachable) << "a gap in the cases";
  EXPECT_NE(wide->not_run.find("1048576"), std::string::npos) << wide->not_run;
}

}  // namespace
}  // namespace gimbal
