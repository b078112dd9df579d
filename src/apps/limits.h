// What this machine gives at best, measured once per device and build and then kept in the user's cache
// folder: every speed is shown as a share of it.
#pragma once
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "device/device.h"

namespace gimbal {

struct Limits {
  double read = 0;            // bytes per second
  double int8 = 0, fp32 = 0;  // operations per second
  std::string instruction_set;
  int threads = 0;
  std::string measured;   // "2026-11-20"
  std::string cached_in;  // a file; empty when it could not be kept
  bool from_cache = false;
};

// nullopt, after a note, for a device that cannot be measured. A cache that cannot be read or written is only
// a note. `megabytes`: of memory that is read, where that was asked for; such limits are kept apart.
std::optional<Limits> device_limits(const Device&, bool measure_again, std::optional<int> megabytes,
                                    bool quiet);

// A note when something was clearly faster than its limit: that was measured while the machine was busy.
void doubt_limits(double largest_share);

// "memory 33.9 GB/s, int8 1,940 Gop/s, fp32 490 Gop/s (amx, 2 threads; measured 2026-11-20, cached in ...)".
std::string limits_text(const Limits&);
Json limits_json(const std::optional<Limits>&);  // null when there are none

// "1.94 Top/s", "489 Gop/s".
std::string human_operations(double per_second);

}  // namespace gimbal
