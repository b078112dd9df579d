#include "program/place.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "device/fit.h"
#include "device/values.h"

namespace gimbal {
namespace {

// The first pattern that matches the kernel; patterns.size() if none does.
size_t preference_of(const char* kernel, const std::vector<std::string>& patterns) {
  for (size_t i = 0; i < patterns.size(); i++)
    if (fnmatch(patterns[i].c_str(), kernel, 0) == 0) return i;
  return patterns.size();
}

const Quarantined* quarantine_of(const char* kernel, const Device& d, const KernelPreference& wish) {
  for (const Quarantined& q : wish.quarantined)
    if (q.kernel == kernel && (q.device.empty() || q.device == d.id())) return &q;
  return nullptr;
}

// Why this kernel cannot compute this op here; nullopt if it can.
std::optional<std::string> refusal(const gimbal_kernel_info& row, const Program& p, const gimbal_op& op,
                                   const Device& d, const gimbal_device_info& about,
                                   const KernelPreference& wish) {
  if (auto why = why_not(row, op, p.values.data(), about, wish.allow_fast)) return why;
  if (const Quarantined* q = quarantine_of(row.name, d, wish)) return "quarantined: " + q->why;
  return std::nullopt;
}
bool fits(const gimbal_kernel_info& row, const Program& p, const gimbal_op& op, const Device& d,
          const gimbal_device_info& about, const KernelPreference& wish) {
  return !misfit(row, op, p.values.data(), about, wish.allow_fast) && !quarantine_of(row.name, d, wish);
}

// Small products take negligible time with any kernel.
constexpr int64_t kMeasuredColumns = 512, kMeasuredValues = 1 << 20;
constexpr size_t kExactRivals = 4;  // the rest belongs to outdated instruction sets

// The index of the measurement for this op; wish.measured.size() if there is none.
size_t measurement_of(const Program& p, const gimbal_op& op, const Device& d, const KernelPreference& wish) {
  const auto& all = wish.measured;
  if (all.empty()) return 0;
  const auto product = measured_as(p, op, d);
  if (!product) return all.size();
  return size_t(std::find_if(all.begin(), all.end(), [&](auto& m) { return m.same_product(*product); }) -
                all.begin());
}

Error nothing_fits(const Program& p, const gimbal_op& op, const Device& d, const gimbal_device_info& about,
                   const KernelPreference& wish) {
  // One sentence suffices for many refusals: the formats, and the reason of the best kernel.
  std::string formats = info(p.info[op.in[0]].shape.type).name;
  if (op.inputs > 1) formats += std::string(" with ") + info(p.info[op.in[1]].shape.type).name;
  const auto rows = d.kernels_for(op.kind);
  const auto best = std::max_element(
      rows.begin(), rows.end(), [&](uint16_t a, uint16_t b) { return d.kernel(a).rank < d.kernel(b).rank; });
  return {
      Code::Unsupported,
      format("device {} has no kernel that computes '{}': {} of {}{}", d.id(), p.output(op).name,
             info(OpKind(op.kind)).name, formats,
             best == rows.end() ? ""
                                : format("; {} {}", d.kernel(*best).name,
                                         refusal(d.kernel(*best), p, op, d, about, wish).value_or("fits"))),
      "", kNoKernel};
}

// The fastest other kernel that fits replaces the one of highest rank, if it was faster by the margin.
void decide_by_measurement(Choice& c, const Program& p, const gimbal_op& op, const Device& d,
                           const gimbal_device_info& about, const KernelPreference& wish) {
  const size_t which = measurement_of(p, op, d, wish);
  if (which == wish.measured.size()) return;
  const auto& times = wish.measured[which].times;
  auto index_of = [&](uint16_t row) {
    return size_t(
        std::find_if(times.begin(), times.end(), [&](auto& t) { return t.kernel == d.kernel(row).name; }) -
        times.begin());
  };
  const size_t ranked = index_of(c.kernel);
  if (ranked == times.size()) return;
  std::optional<uint16_t> other;
  size_t fastest = ranked;  // of the others
  for (uint16_t r : d.kernels_for(op.kind)) {
    const size_t i = index_of(r);
    if (r == c.kernel || i == times.size() || !fits(d.kernel(r), p, op, d, about, wish)) continue;
    if (!other || times[i].seconds < times[fastest].seconds) other = r, fastest = i;
  }
  if (!other) return;
  const bool takes_place = times[fastest].seconds * kMeasuredMargin < times[ranked].seconds;
  c.why = Choice::Measured, c.pattern = uint16_t(which);
  c.taken = uint8_t(takes_place ? fastest : ranked), c.other = uint8_t(takes_place ? ranked : fastest);
  if (takes_place) c.kernel = *other;
}

Result<Choice> choose(const Program& p, const gimbal_op& op, const Device& d, const gimbal_device_info& about,
                      const KernelPreference& wish) {
  const size_t none = wish.patterns.size();
  std::optional<uint16_t> best;
  size_t preferred = none, fitting = 0;
  for (uint16_t r : d.kernels_for(op.kind)) {
    if (!fits(d.kernel(r), p, op, d, about, wish)) continue;
    fitting++;
    const size_t pattern = preference_of(d.kernel(r).name, wish.patterns);
    if (best && (pattern > preferred || (pattern == preferred && d.kernel(r).rank <= d.kernel(*best).rank)))
      continue;
    best = r, preferred = pattern;
  }
  if (!best) return nothing_fits(p, op, d, about, wish);
  if (preferred == none && none > 0 && wish.strict)
    return Error{Code::NoBackend,
                 format("no preferred kernel computes '{}' ({}); '{}' would be used", p.output(op).name,
                        info(OpKind(op.kind)).name, d.kernel(*best).name),
                 "",
                 kNoKernel,
                 "prefer_kernel",
                 "",
                 "",
                 {{"strict", "false", ""}, {"prefer_kernel", "", "with a pattern that covers it"}}};
  Choice c{*best, uint16_t(preferred),
           preferred < none ? Choice::Preferred
           : fitting == 1   ? Choice::OnlyOne
                            : Choice::HighestRank,
           none > 0 && preferred == none};
  if (c.why == Choice::HighestRank) decide_by_measurement(c, p, op, d, about, wish);
  return c;
}

}  // namespace

Result<std::vector<Choice>> assign_kernels(Program& p, const Device& d, const KernelPreference& wish) {
  std::vector<Choice> choices;
  choices.reserve(p.ops.size());
  const gimbal_device_info about = d.describe();
  for (gimbal_op& op : p.ops) {
    auto c = choose(p, op, d, about, wish);
    if (!c) return c.error();
    op.kernel = c->kernel;
    choices.push_back(*c);
  }
  return choices;
}

std::vector<size_t> rivals(const Program& p, const gimbal_op& op, const Device& d,
                           const KernelPreference& wish) {
  if (!measured_as(p, op, d)) return {};
  const gimbal_device_info about = d.describe();
  std::vector<size_t> exact, all;
  for (uint16_t r : d.kernels_for(op.kind)) {
    const gimbal_kernel_info& row = d.kernel(r);
    if (!fits(row, p, op, d, about, wish)) continue;
    if (preference_of(row.name, wish.patterns) < wish.patterns.size()) return {};
    (row.numerics == GIMBAL_EXACT ? exact : all).push_back(r);
  }
  std::stable_sort(exact.begin(), exact.end(),
                   [&](size_t a, size_t b) { return d.kernel(a).rank > d.kernel(b).rank; });
  exact.resize(std::min(exact.size(), kExactRivals));
  all.insert(all.begin(), exact.begin(), exact.end());
  if (all.size() < 2) all.clear();
  return all;
}

std::optional<MeasuredProduct> measured_as(const Program& p, const gimbal_op& op, const Device& d) {
  if (OpKind(op.kind) != OpKind::MatMul) return std::nullopt;
  const gimbal_value& w = p.values[op.in[0]];
  if (w.dim[0] < kMeasuredColumns || w.dim[0] * w.dim[1] < kMeasuredValues) return std::nullopt;
  const int64_t rows = rows_of(p.values[op.out[0]]);
  return MeasuredProduct{d.id(),
                         DType(w.dtype),
                         w.dim[0],
                         rows <= 1    ? 1
                         : rows <= 8  ? 4
                         : rows <= 32 ? 16
                                      : 64,
                         {}};
}

bool MeasuredProduct::same_product(const MeasuredProduct& o) const {
  return format == o.format && columns == o.columns && rows == o.rows && device == o.device;
}
const MeasuredProduct::Time* MeasuredProduct::of(std::string_view kernel) const {
  const auto t = std::find_if(times.begin(), times.end(), [&](const Time& x) { return x.kernel == kernel; });
  return t == times.end() ? nullptr : &*t;
}

std::string why_chosen(const Choice& c, const KernelPreference& wish) {
  if (c.why == Choice::Preferred) return format("matches the preference '{}'", wish.patterns[c.pattern]);
  std::string why = c.why == Choice::OnlyOne ? "the only kernel that fits" : "the highest rank that fits";
  if (c.why == Choice::Measured) {
    const auto& times = wish.measured[c.pattern].times;
    const double speed = times[c.other].seconds / times[c.taken].seconds;
    why = format("measured: {:.2f}x of {}{}", speed, times[c.other].kernel,
                 speed < 1 ? ", too close to change the rank's choice" : "");
  }
  if (c.without_preferred) why += "; no preferred kernel computes this op";
  return why;
}

std::vector<Rejected> rejections(const Program& p, const gimbal_op& op, const Device& d,
                                 const KernelPreference& wish) {
  const gimbal_device_info about = d.describe();
  const gimbal_kernel_info& taken = d.kernel(op.kernel);
  const size_t preferred = preference_of(taken.name, wish.patterns);
  const size_t which =
      preferred < wish.patterns.size() ? wish.measured.size() : measurement_of(p, op, d, wish);
  auto time_of = [&](const gimbal_kernel_info& row) {
    return which < wish.measured.size() ? wish.measured[which].of(row.name) : nullptr;
  };
  const auto* taken_time = time_of(taken);
  std::vector<Rejected> all;
  for (uint16_t r : d.kernels_for(op.kind)) {
    if (r == op.kernel) continue;
    const gimbal_kernel_info& row = d.kernel(r);
    if (auto why = refusal(row, p, op, d, about, wish)) all.push_back({r, std::move(*why)});
    else if (preference_of(row.name, wish.patterns) > preferred)
      all.push_back({r, "fits, but another kernel is preferred"});
    else if (const auto* time = time_of(row); time && taken_time) {
      const double speed = taken_time->seconds / time->seconds;
      all.push_back({r, speed < 1 ? format("fits, but measured slower ({:.2f}x)", speed)
                                  : format("fits, and measured hardly faster ({:.2f}x)", speed)});
    } else all.push_back({r, format("fits, but ranks lower ({} against {})", row.rank, taken.rank)});
  }
  std::stable_sort(all.begin(), all.end(), [&](const Rejected& a, const Rejected& b) {
    return d.kernel(a.kernel).rank > d.kernel(b.kernel).rank;
  });
  return all;
}

}  // namespace gimbal
