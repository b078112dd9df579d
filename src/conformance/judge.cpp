// hot: every number that a kernel computes
#include "conformance/judge.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "conformance/case_program.h"
#include "ops/op_def.h"
#include "ops/rounding.h"

namespace gimbal {
namespace {

// The error that an op allows, apart from the rounding to a narrow format.
struct Allowed {
  double share;  // of the magnitude of a value's terms
  double least;
};

// The largest fraction of the allowed error, and its location.
struct Worst {
  double share = 0;
  size_t at = 0;
};
Worst worst_of(const reference::Tensor& got, const reference::Tensor& want,
               const std::vector<double>& magnitude, Allowed allowed) {
  const DType type = want.shape.type;
  const bool floats = has(kFloats, type), narrow = floats && info(type).bytes == 2;
  // Infinity counts as the number behind the largest.
  const double end =
      floats && type != DType::F64 ? std::ldexp(1.0, std::ilogb(float_format(type).largest) + 1) : INFINITY;
  const auto inside = [end](double v) { return std::clamp(v, -end, end); };
  Worst worst;
  for (size_t i = 0; i < got.values.size(); i++) {
    const double g = got.values[i], w = want.values[i];
    // Where no rounding is allowed, zeros must have the right sign.
    const bool exact = allowed.share == 0 || magnitude[i] < 0;
    bool same =
        (std::isnan(g) && std::isnan(w)) || (g == w && (!exact || std::signbit(g) == std::signbit(w)));
    if (!want.whole.empty() && info(type).bytes == 8) same = got.whole[i] == want.whole[i];
    double share = 0;
    if (!same) {
      const double error = std::fabs(inside(g) - inside(w)),
                   slack = allowed.share * magnitude[i] + allowed.least;
      share = exact || !(slack >= 0) || std::isnan(error)
                  ? INFINITY
                  : error / (slack + (narrow ? unit_around(type, std::fabs(inside(w)) + slack) / 2 : 0));
    }
    if (!(share <= worst.share)) worst = {share, i};
  }
  return worst;
}

// Words, or shorter elements; a NaN may have any payload.
void add_bits(KernelReport& report, const DType type, const unsigned char* bytes, size_t n) {
  constexpr uint64_t kTiny = 0x18800000;  // 2^-78 as f32
  const size_t size = has(kFloats, type) ? info(type).bytes : 4;
  for (size_t at = 0; at < n; at += size) {
    uint64_t element = 0;
    std::memcpy(&element, bytes + at, std::min(size, n - at));
    const uint64_t infinity = type == DType::F64 ? 0x7ff0000000000000u : type == DType::F16 ? 0x7c00 : 0x7f80;
    const uint64_t magnitude = element & ~(uint64_t(1) << (8 * size - 1));
    if (has(kFloats, type) && magnitude > (type == DType::F32 ? infinity << 16 : infinity))
      element = 0x7fc00000;
    report.bits.add(element);
    report.bits_without_tiny.add(type == DType::F32 && magnitude < kTiny ? 0 : element);
  }
}

// A write outside the values of the output that begin at kGuard; empty if there is none.
std::string stray_write(const Case& c, const Computed& computed, size_t used, const CaseInput* written) {
  std::vector<bool> may(computed.output.size(), false);
  if (written) {
    const size_t size = info(written->shape.type).bytes;
    for (int64_t place : places_of(*written))
      std::fill_n(may.begin() + ptrdiff_t(kGuard + size * size_t(place)), size, true);
    used = written->dense.size();
  } else {
    // A device may write whole words: the next value begins at a multiple of 64 bytes.
    used = (used + 3) / 4 * 4;
    std::fill_n(may.begin() + kGuard, used, true);
  }
  for (size_t i = 0; i < may.size(); i++) {
    if (may[i] || computed.output[i] == computed.before[i]) continue;
    if (i < kGuard) return format("byte {} before the output was overwritten", kGuard - i);
    if (i < kGuard + used) return format("byte {} between the elements was overwritten", i - kGuard);
    const std::string rows = def(c.kind).row_inputs() ? format("{} rows to compute", c.rows) : "output";
    return format("byte {} behind the {} was overwritten", i - kGuard - used, rows);
  }
  return "";
}

}  // namespace

void judge(const Case& c, const CaseInput* written, const Expected& want, const gimbal_kernel_info& row,
           const Computed& computed, KernelReport& report) {
  const unsigned char* const values = computed.output.data() + kGuard;
  const bool by_rows = def(c.kind).row_inputs() != 0;
  Shape shape = want.out.shape;
  if (by_rows) shape.last() = c.rows;
  std::vector<Shape> shapes;
  for (const CaseInput& in : c.inputs) shapes.push_back(in.shape);
  Allowed allowed{tolerance(c.kind, shapes) + double(row.tolerance), 1e-37};
  // Of whole values some units of the smallest numbers, which are those of the arithmetic.
  if (!by_rows) allowed.least = allowed.share * (shapes[0].type == DType::F64 ? 0x1p-1019 : 0x1p-123);
  report.cases++;
  std::string wrong;
  auto compare = [&](const char* what, const reference::Tensor& got, const reference::Tensor& wanted,
                     const std::vector<double>& magnitude) {
    const Worst worst = worst_of(got, wanted, magnitude, allowed);
    report.worst = std::max(report.worst, worst.share);
    if (!(worst.share <= 1) && wrong.empty())
      wrong = format("{} {} is {:.9g}, expected {:.9g}: {:.3g} times the error that the definition allows",
                     what, worst.at, got.values[worst.at], wanted.values[worst.at], worst.share);
  };
  std::vector<std::byte> dense(size_t(shape.bytes()));
  if (written) {
    CaseInput after = *written;
    std::memcpy(after.dense.data(), values, after.dense.size());
    dense = dense_bytes(after);
  } else {
    std::memcpy(dense.data(), values, dense.size());
  }
  compare("value", reference::decode(shape, dense.data()), want.out, want.magnitude);
  if (!computed.state.empty())
    compare("value of the state", reference::decode(want.state.shape, computed.state.data()), want.state,
            want.state_magnitude);
  add_bits(report, shape.type, reinterpret_cast<const unsigned char*>(dense.data()), dense.size());
  add_bits(report, DType::F32, computed.state.data(), computed.state.size());
  if (wrong.empty()) wrong = computed.damage;
  if (wrong.empty()) wrong = stray_write(c, computed, dense.size(), written);
  if (wrong.empty()) return;
  report.failed++;
  report.failures.push_back(c.name + ": " + wrong);
}

}  // namespace gimbal
