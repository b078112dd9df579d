// The peak speeds of this machine, to which reports relate every speed. Measured once per device and build,
// then kept in the user's cache folder.
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
  std::string cached_in;  // a file; empty if it could not be saved
  bool from_cache = false;
};

// nullopt, after a note, if the device cannot be measured. Cache failures are only notes. `megabytes`:
// memory size of the measurement, if requested; such limits are cached separately.
std::optional<Limits> device_limits(const Device&, bool measure_again, std::optional<int> megabytes,
                                    bool quiet);

// Notes that a speed clearly exceeded its limit: the machine was busy during the limit's measurement.
void doubt_limits(double largest_share);

// "memory 33.9 GB/s, int8 1,940 Gop/s, fp32 490 Gop/s (amx, 2 threads; measured 2026-11-20, cached in ...)".
std::string limits_text(const Limits&);
Json limits_json(const std::optional<Limits>&);  // null if absent

// "1.94 Top/s", "489 Gop/s".
std::string human_operations(double per_second);

}  // namespace gimbal
