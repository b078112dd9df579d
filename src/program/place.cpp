#include "program/place.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>

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

// Why this kernel does not compute this op here; nullopt when it does.
std::optional<std::string> refusal(const gimbal_kernel_info& row, const Program& p, const gimbal_op& op,
                                   const gimbal_device_info& about, const KernelPreference& wish) {
  if (auto why = why_not(row, op, p.values.data(), about, wish.allow_fast)) return why;
  for (const Quarantined& q : wish.quarantined)
    if (q.kernel == row.name) return "quarantined: " + q.why;
  return std::nullopt;
}

Result<Choice> choose(const Program& p, const gimbal_op& op, const Device& d, const gimbal_device_info& about,
                      const KernelPreference& wish) {
  std::vector<size_t> fitting;
  std::vector<Rejected> rejected;
  for (size_t r = 0; r < d.kernel_count(); r++) {
    if (d.kernel(r).op != op.kind) continue;
    if (auto why = refusal(d.kernel(r), p, op, about, wish)) rejected.push_back({r, *why});
    else fitting.push_back(r);
  }
  const std::string& what = p.output(op).name;
  if (fitting.empty()) {
    // Every row refuses for a reason of its own; for a format that nothing takes, one sentence says it all.
    std::string formats = info(p.info[op.in[0]].shape.type).name;
    if (op.inputs > 1) formats += std::string(" with ") + info(p.info[op.in[1]].shape.type).name;
    std::string best;
    if (!rejected.empty()) {
      auto r = std::max_element(rejected.begin(), rejected.end(), [&](auto& a, auto& b) {
        return d.kernel(a.kernel).rank < d.kernel(b.kernel).rank;
      });
      best = format("; {} {}", d.kernel(r->kernel).name, r->why);
    }
    return Error{Code::Unsupported,
                 format("device {} has no kernel that computes '{}': {} of {}{}", d.id(), what,
                        kOps[op.kind].name, formats, best),
                 "`gimbal kernels` lists what each device computes"};
  }
  auto key = [&](size_t r) {
    return std::pair(-int(preference_of(d.kernel(r).name, wish.patterns)), int(d.kernel(r).rank));
  };
  std::stable_sort(fitting.begin(), fitting.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
  const size_t best = fitting[0];
  const size_t preferred = preference_of(d.kernel(best).name, wish.patterns);
  Choice c{best, "", {}};
  if (preferred < wish.patterns.size()) {
    c.why = format("matches the preference '{}'", wish.patterns[preferred]);
  } else {
    if (!wish.patterns.empty() && wish.strict)
      return Error{Code::NoBackend,
                   format("--strict: no preferred kernel computes '{}' ({}); '{}' would be used", what,
                          kOps[op.kind].name, d.kernel(best).name),
                   "add a --prefer-kernel pattern that covers it, or leave --strict out"};
    c.why = fitting.size() == 1 ? "the only kernel that fits" : "the highest rank that fits";
    if (!wish.patterns.empty()) c.why += "; no preferred kernel computes this op";
  }
  for (size_t i = 1; i < fitting.size(); i++)
    c.rejected.push_back({fitting[i], format("fits, but ranks lower ({} against {})",
                                             d.kernel(fitting[i]).rank, d.kernel(best).rank)});
  for (Rejected& r : c.rejected)
    if (preference_of(d.kernel(r.kernel).name, wish.patterns) > preferred)
      r.why = "fits, but another kernel is preferred";
  c.rejected.insert(c.rejected.end(), rejected.begin(), rejected.end());
  std::stable_sort(c.rejected.begin(), c.rejected.end(),
                   [&](auto& a, auto& b) { return d.kernel(a.kernel).rank > d.kernel(b.kernel).rank; });
  return c;
}

}  // namespace

Result<std::vector<Choice>> assign_kernels(Program& p, const Device& d, const KernelPreference& wish) {
  std::vector<Choice> choices;
  const gimbal_device_info about = d.describe();
  for (gimbal_op& op : p.ops) {
    auto c = choose(p, op, d, about, wish);
    if (!c) return c.error();
    op.kernel = uint16_t(c->kernel);
    choices.push_back(std::move(*c));
  }
  return choices;
}

}  // namespace gimbal
