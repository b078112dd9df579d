#include "program/place.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "device/fit.h"

namespace gimbal {
namespace {

// The first pattern that names the kernel; patterns.size() when none does.
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

// Why this kernel does not compute this op here; nullopt when it does.
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

Error nothing_fits(const Program& p, const gimbal_op& op, const Device& d, const gimbal_device_info& about,
                   const KernelPreference& wish) {
  // Every row refuses for a reason of its own; for a format that nothing takes, one sentence says it all.
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
  return Choice{*best, uint16_t(preferred),
                preferred < none ? Choice::Preferred
                : fitting == 1   ? Choice::OnlyOne
                                 : Choice::HighestRank,
                none > 0 && preferred == none};
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

std::string why_chosen(const Choice& c, const KernelPreference& wish) {
  if (c.why == Choice::Preferred) return format("matches the preference '{}'", wish.patterns[c.pattern]);
  std::string why = c.why == Choice::OnlyOne ? "the only kernel that fits" : "the highest rank that fits";
  if (c.without_preferred) why += "; no preferred kernel computes this op";
  return why;
}

std::vector<Rejected> rejections(const Program& p, const gimbal_op& op, const Device& d,
                                 const KernelPreference& wish) {
  const gimbal_device_info about = d.describe();
  const gimbal_kernel_info& taken = d.kernel(op.kernel);
  const size_t preferred = preference_of(taken.name, wish.patterns);
  std::vector<Rejected> all;
  for (uint16_t r : d.kernels_for(op.kind)) {
    if (r == op.kernel) continue;
    const gimbal_kernel_info& row = d.kernel(r);
    if (auto why = refusal(row, p, op, d, about, wish)) all.push_back({r, std::move(*why)});
    else if (preference_of(row.name, wish.patterns) > preferred)
      all.push_back({r, "fits, but another kernel is preferred"});
    else all.push_back({r, format("fits, but ranks lower ({} against {})", row.rank, taken.rank)});
  }
  std::stable_sort(all.begin(), all.end(), [&](const Rejected& a, const Rejected& b) {
    return d.kernel(a.kernel).rank > d.kernel(b.kernel).rank;
  });
  return all;
}

}  // namespace gimbal
