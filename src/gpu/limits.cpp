#include "gpu/limits.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "gpu_kernels.h"

namespace gimbal::gpu {
namespace {

constexpr uint32_t kTrialLanes = 256;         // of both kernels
constexpr uint32_t kTrialGroups = 8192;       // at most: several for each multiprocessor of any device
constexpr uint64_t kReadBytes = 1 << 30;      // larger than any cache
constexpr uint64_t kSoftwareBytes = 1 << 28;  // a software device is slower
constexpr double kLinks = 8 * 64;             // of a lane and a round in limit_compute.k
constexpr double kMatrixLinks = 4 * 16;       // the same in limit_matrix.k, whose arguments are the same
constexpr double kMatrixOperations = 2.0 * 16 * 16 * 8 / 32;  // of a lane's link
constexpr int kPasses = 5;                                    // the fastest counts
constexpr double kPassSeconds = 0.01;                         // of a pass, at least

// Buffers and one launch, released at the end.
class Trial {
 public:
  explicit Trial(Runtime& runtime) : runtime_(runtime) {}
  ~Trial() {
    runtime_.discard(recording_);
    for (Buffer* b : {x_, y_, step_}) runtime_.release(b);
  }
  Failure make(uint64_t x_bytes) {
    Failure f = runtime_.allocate(x_bytes, &x_);
    if (!f) f = runtime_.allocate(uint64_t(kTrialGroups) * kTrialLanes * 4, &y_);
    if (!f) f = runtime_.allocate(8, &step_);
    return f;
  }
  Failure write(const std::vector<uint32_t>& words) {
    return runtime_.write(x_, 0, words.data(), words.size() * 4);
  }

  template <class Params>
  Failure record(Kernel* kernel, uint64_t x_bytes, const Params& params, uint32_t groups = kTrialGroups) {
    runtime_.discard(recording_), recording_ = nullptr;
    Launch l;
    l.kernel = kernel;
    l.binding[0] = {x_, 0, x_bytes}, l.binding[1] = {y_, 0, uint64_t(kTrialGroups) * kTrialLanes * 4},
    l.step = {step_, 0, 8};
    memcpy(l.params, &params, sizeof params);
    l.groups[0] = groups;
    return runtime_.record({&l, 1}, &recording_);
  }
  // Seconds of one replay among `replays`.
  Failure time(int replays, double* seconds) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < replays; i++)
      if (Failure f = runtime_.replay(recording_)) return f;
    if (Failure f = runtime_.wait()) return f;
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / replays;
    return {};
  }
  // The fastest of several passes, each long enough that starting it does not count.
  Failure fastest(double* seconds) {
    int replays = 1;
    Failure f = time(1, seconds);  // the first launch also loads the kernel
    for (; !f && replays < 1 << 12; replays *= 2) {
      f = time(replays, seconds);
      if (*seconds * replays >= kPassSeconds) break;
    }
    for (int pass = 1; !f && pass < kPasses; pass++) {
      double now = 0;
      f = time(replays, &now);
      *seconds = std::min(*seconds, now);
    }
    return f;
  }

 private:
  Runtime& runtime_;
  Buffer *x_ = nullptr, *y_ = nullptr, *step_ = nullptr;
  Recording* recording_ = nullptr;
};

Failure read_speed(Runtime& runtime, Kernel* kernel, double* bytes_per_second) {
  const Facts& facts = runtime.facts();
  const uint64_t bytes = std::min({facts.software ? kSoftwareBytes : kReadBytes, facts.memory_free / 4,
                                   facts.max_allocation_bytes, facts.max_binding_bytes}) /
                         4096 * 4096;
  Trial trial(runtime);
  if (Failure f = trial.make(bytes)) return f;
  // How many groups read fastest differs between devices.
  for (uint32_t groups = kTrialGroups / 16; groups <= kTrialGroups; groups *= 2) {
    if (Failure f =
            trial.record(kernel, bytes, limit_read_params{uint32_t(bytes / 4), groups * kTrialLanes}, groups))
      return f;
    double seconds = 0;
    if (Failure f = trial.fastest(&seconds)) return f;
    *bytes_per_second = std::max(*bytes_per_second, double(bytes) / seconds);
  }
  return {};
}

// `operations` of a lane in a round.
Failure compute_speed(Runtime& runtime, Kernel* kernel, double operations, double* per_second) {
  const uint32_t groups = runtime.facts().software ? kTrialGroups / 64 : kTrialGroups;
  Trial trial(runtime);
  std::vector<uint32_t> seeds(kTrialLanes);
  for (uint32_t i = 0; i < kTrialLanes; i++) seeds[i] = i % 100;
  if (Failure f = trial.make(kTrialLanes * 4)) return f;
  if (Failure f = trial.write(seeds)) return f;
  double seconds = 0;
  uint32_t rounds = 1;
  for (;; rounds *= 4) {  // until the launch itself no longer counts
    if (Failure f = trial.record(kernel, kTrialLanes * 4, limit_compute_params{rounds}, groups)) return f;
    if (Failure f = trial.time(1, &seconds)) return f;
    if (seconds >= kPassSeconds / 4 || rounds >= 1024) break;
  }
  if (Failure f = trial.fastest(&seconds)) return f;
  *per_second = operations * groups * kTrialLanes * rounds / seconds;
  return {};
}

}  // namespace

Failure measure_limits(Runtime& runtime, const KernelNamed& kernel_named, bool matrix_units,
                       gimbal_limits* out) {
  Kernel *read = nullptr, *int8 = nullptr, *fp32 = nullptr;
  Failure f = kernel_named("limit_read", &read);
  if (!f) f = kernel_named("limit_int8", &int8);
  if (!f) f = kernel_named("limit_fp32", &fp32);
  if (!f) f = read_speed(runtime, read, &out->read_bytes_per_second);
  if (!f)
    f = compute_speed(runtime, int8, 8 * kLinks, &out->int8_ops_per_second);  // four products, four sums
  if (!f) f = compute_speed(runtime, fp32, 2 * kLinks, &out->fp32_ops_per_second);
  out->instruction_set = "products of four bytes";
  if (matrix_units && !f) {
    Kernel* matrix = nullptr;
    double speed = 0;
    f = kernel_named("limit_matrix", &matrix);
    if (!f) f = compute_speed(runtime, matrix, kMatrixOperations * kMatrixLinks, &speed);
    if (speed > out->int8_ops_per_second)
      out->int8_ops_per_second = speed, out->instruction_set = "matrix units";
  }
  out->threads = 0;
  return f;
}

}  // namespace gimbal::gpu
