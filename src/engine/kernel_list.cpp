#include "engine/kernel_list.h"

#include <algorithm>
#include <span>

#include "base/format.h"
#include "engine/kernel_registry.h"

namespace gimbal {
namespace {

std::span<const gimbal_limit> limits_of(const gimbal_kernel_info& k) { return {k.limits, k.n_limits}; }

// All 0 if the row has none.
gimbal_limit limit(const gimbal_kernel_info& k, gimbal_measure what) {
  for (const gimbal_limit& l : limits_of(k))
    if (l.what == what && l.index == 0) {
      gimbal_limit found = l;
      if (found.max == INT64_MAX) found.max = 0;
      return found;
    }
  return {};
}

std::string limits_text(const gimbal_kernel_info& k) {
  std::string out;
  for (const gimbal_limit& l : limits_of(k)) {
    if (l.what != GIMBAL_ROWS && l.what != GIMBAL_DIM) continue;  // the others are the same for all rows
    out += (out.empty() ? "" : ", ") + std::string(l.name ? l.name : "");
    if (l.multiple) out += format(" a multiple of {}", l.multiple);
    if (l.min > 1) out += format(" from {}", l.min);
    if (l.max < INT64_MAX) out += format(" to {}", l.max);
  }
  return out;
}

ListedKernel listed(const Device& d, const gimbal_device_info& about, const gimbal_kernel_info& k) {
  ListedKernel to;
  to.name = k.name, to.device = d.id(), to.variant = variant_of(k.name);
  to.op = k.op, to.rank = k.rank, to.exact = k.numerics == GIMBAL_EXACT;
  to.first = k.in[0].dtypes, to.second = k.in[1].dtypes, to.output = k.out[0].dtypes;
  to.k_multiple = limit(k, GIMBAL_DIM).multiple;
  to.min_rows = limit(k, GIMBAL_ROWS).min, to.max_rows = limit(k, GIMBAL_ROWS).max;
  to.limits = limits_text(k), to.needs = needs_of(k, about), to.missing = missing_of(k, about);
  return to;
}

}  // namespace

KernelList list_kernels(Registry& registry) {
  KernelList all;
  for (const BackendReport& backend : registry.discover()) {
    for (const DeviceReport& found : backend.devices) {
      auto opened = registry.open({backend.backend, found.index, true});
      if (!opened) {
        all.notes.push_back(opened.error().message);
        continue;
      }
      const Device& d = *opened->device;
      const gimbal_device_info about = d.describe();
      for (size_t i = 0; i < d.kernel_count(); i++) all.kernels.push_back(listed(d, about, d.kernel(i)));
    }
    if (backend.present && !backend.available)
      all.notes.push_back(format("{}: {}", backend.backend, backend.message));
  }
  std::stable_sort(all.kernels.begin(), all.kernels.end(),
                   [](const ListedKernel& a, const ListedKernel& b) { return a.op < b.op; });
  return all;
}

}  // namespace gimbal
