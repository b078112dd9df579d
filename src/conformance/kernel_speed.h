// Times one row of a device's kernel table: the op alone, over more memory than a cache holds where it reads
// weights or a KV cache. `gimbal bench --kernels` prints what this finds.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "ops/cost.h"
#include "ops/op_def.h"
#include "program/place.h"

namespace gimbal {

struct SpeedRequest {
  int rows = 1;                // tokens computed at once
  uint64_t bytes = 512 << 20;  // of weights or KV cache that a pass with few rows goes over, at least
  double seconds = 0.25;       // of measuring; one pass is always made
  KernelPreference kernels;
  bool only_chosen = true;  // only what selection would choose; else every row that fits is pinned
};

struct KernelSpeed {
  DType format;
  std::string shape;        // "2048 x 8192"
  int rows = 0;             // that were computed: fewer than asked for where a pass would take long
  int passes = 0, ops = 0;  // of one pass
  double seconds = 0;       // of the fastest pass
  Cost cost;                // of one pass
  uint64_t memory = 0;      // weights or KV cache that a pass goes over, as they lie on the device
  bool int8 = false;        // its products are of bytes
};

// Holds the memory that its measurements share. The device outlives it, and computes nothing else meanwhile.
class KernelTimer {
 public:
  explicit KernelTimer(const Device& device) : device_(device) {}

  // nullopt: the row does not compute this format with so many rows, or (only_chosen) another one would be
  // chosen. Errors: Unsupported when the op has no benchmark or something that it needs has no kernel; those
  // of the device.
  Result<std::optional<KernelSpeed>> measure(size_t kernel, DType format, const SpeedRequest& request);

  // Seconds that each of these rows of the table, which compute the op in this shape, takes for the same
  // work: the best of some passes, taken in turn so that what slows the machine slows all of them; of more
  // passes where another row would take the first one's place. Of a row that is slower by far an estimate.
  // `bytes`: of weights that a pass goes over, at least; `wish`: for the other ops that this takes. Errors:
  // as above.
  Result<std::vector<double>> race(const std::vector<size_t>& kernels, OpKind kind, const Bench& shape,
                                   int rows, uint64_t bytes, const KernelPreference& wish);

 private:
  struct Run;
  Status ensure(Slot slot, uint64_t bytes);
  Status fill(Run&);
  Status compute_before(Run&);
  Result<double> pass(Run&, Executable&, int rows);
  Result<KernelSpeed> time(Run&, const SpeedRequest&);

  const Device& device_;
  Buffer buffers_[kSlots];
};

}  // namespace gimbal
