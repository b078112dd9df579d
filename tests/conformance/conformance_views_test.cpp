// The examiner of ops on whole values is examined: an assign between views that is wrong in one deliberate
// way each must be caught, and a right one must pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "conformance/conformance.h"
#include "device/tensor_claims.h"
#include "support/fake_backend.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {

using test::FakeCall;

int64_t place_of(const gimbal_value& v, int64_t element) {
  int64_t at = 0;
  for (int i = 0; i < v.rank; i++) at += element % v.dim[i] * v.stride[i], element /= v.dim[i];
  return at;
}

// As if it were dense, within its memory.
int64_t dense_place(const gimbal_value& v, int64_t element) {
  return element % (int64_t(v.bytes) / info(DType(v.dtype)).bytes);
}

// Defects of an assign. Each function gets the call and the index of an element.
struct Fault {
  const char* name;
  int64_t (*from)(const FakeCall&, int64_t) = [](const FakeCall& c, int64_t i) {
    return place_of(*c.in[1], i);
  };
  int64_t (*to)(const FakeCall&, int64_t) = [](const FakeCall& c, int64_t i) { return place_of(c.out, i); };
  void (*change)(DType, unsigned char*) = [](DType, unsigned char*) {};  // of an element
  int spill = 0;                                                         // bytes written behind each element
};

KernelReport assigned(const Fault& fault) {
  test::FakeSettings s;
  s.rows = {tensor_claims("fake.assign", OpKind::Assign, DType::F32)};
  s.compute = [fault](const FakeCall& c) {
    const auto type = DType(c.out.dtype);
    const auto size = size_t(info(type).bytes);
    int64_t count = 1;
    for (int i = 0; i < c.out.rank; i++) count *= c.out.dim[i];
    for (int64_t i = 0; i < count; i++) {
      unsigned char element[16] = {};
      std::memcpy(element, c.x[1] + fault.from(c, i) * int64_t(size), size);
      fault.change(type, element);
      // Behind every other element of a row nothing of the target lies.
      const size_t spill = c.out.stride[0] == 2 ? size_t(fault.spill) : 0;
      std::memcpy(c.y + fault.to(c, i) * int64_t(size), element, size + spill);
    }
  };
  auto device = test::open_fake(s);
  auto report = check_kernel(*device, 0);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : KernelReport{};
}

TEST(ConformanceViews, ARightKernelPasses) {
  const KernelReport r = assigned({"nothing"});
  EXPECT_GT(r.cases, 100);
  EXPECT_EQ(r.failed, 0) << r.failures[0];
}

TEST(ConformanceViews, EveryFaultIsCaught) {
  const Fault faults[] = {
      {"takes the operand as dense", [](const FakeCall& c, int64_t i) { return dense_place(*c.in[1], i); }},
      {.name = "takes the target as dense",
       .to = [](const FakeCall& c, int64_t i) { return dense_place(c.out, i); }},
      {"knows no strides below 0",
       [](const FakeCall& c, int64_t i) { return std::max<int64_t>(0, place_of(*c.in[1], i)); }},
      {"reads one element before",
       [](const FakeCall& c, int64_t i) { return place_of(*c.in[1], i) - (c.in[1]->stride[0] == 2); }},
      {.name = "writes between the elements", .spill = 1},
      {.name = "moves integers as doubles",
       .change =
           [](DType t, unsigned char* p) {
             int64_t v = 0;
             std::memcpy(&v, p, 8);
             v = std::abs(v) < int64_t(1) << 62 ? int64_t(double(v)) : v;
             if (t == DType::I64) std::memcpy(p, &v, 8);
           }},
      {.name = "flushes subnormal numbers",
       .change =
           [](DType t, unsigned char* p) {
             float v = 0;
             std::memcpy(&v, p, 4);
             if (t == DType::F32 && std::fpclassify(v) == FP_SUBNORMAL) std::memset(p, 0, 4);
           }},
      {.name = "loses the sign of 0",
       .change =
           [](DType t, unsigned char* p) {
             const uint64_t minus = t == DType::F64 ? uint64_t(1) << 63 : 0;
             uint64_t bits = 0;
             std::memcpy(&bits, p, 8);
             if (minus && bits == minus) std::memset(p, 0, 8);
           }},
  };
  for (const Fault& f : faults) EXPECT_GT(assigned(f).failed, 0) << "not caught: an assign that " << f.name;
}

}  // namespace
}  // namespace gimbal
