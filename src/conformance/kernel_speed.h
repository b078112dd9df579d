// Times one kernel of a device: a single op, over more memory than the caches hold if it reads weights or a
// KV cache. `gimbal bench --kernels` prints the results.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "ops/op_def.h"
#include "program/place.h"

namespace gimbal {

struct SpeedRequest {
  int rows = 1;                // tokens per pass
  uint64_t bytes = 512 << 20;  // minimum size of the weights or KV cache read by a pass with few rows
  double seconds = 0.25;       // measuring time; at least one pass is made
  KernelPreference kernels;
  bool only_chosen = true;  // only the kernel that selection would choose; else every one that fits
};

struct KernelSpeed {
  DType format;
  std::string shape;        // "2048 x 8192"
  int rows = 0;             // computed: fewer than requested if a pass would take too long
  int passes = 0, ops = 0;  // per pass
  double seconds = 0;       // the fastest pass
  Cost cost;                // per pass
  uint64_t memory = 0;      // weights or KV cache read per pass, in the device's layout
  bool int8 = false;        // multiplies bytes
};

// Holds the memory shared by its measurements. The device must outlive it and run nothing else meanwhile.
class KernelTimer {
 public:
  explicit KernelTimer(const Device& device) : device_(device) {}

  // nullopt: the kernel does not support this format with so many rows, or (only_chosen) selection would
  // choose another one. Errors: Unsupported if the op has no benchmark or a required helper op has no kernel;
  // those of the device.
  Result<std::optional<KernelSpeed>> measure(size_t kernel, DType format, const SpeedRequest& request);

  // Seconds that each of these kernels takes for the same work of this op and
  // shape: the best of several passes, interleaved so that disturbances affect
  // all kernels alike, with more passes if another kernel would replace the
  // first one. Much slower kernels are only estimated. `bytes`: minimum size of
  // the weights read per pass; `wish`: for the helper ops. Errors: as above.
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
