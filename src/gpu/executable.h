// A program as launches, recorded once per set of bound buffers and replayed for every step.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/launches.h"
#include "gpu/rows.h"

namespace gimbal::gpu {

// A backend's memory; a gimbal_buffer. If it exceeds the device's largest allocation, it consists of several
// pieces, allocated once the contents and their possible cuts are known.
struct DeviceBuffer {
  struct Piece {
    uint64_t base, begin, end;  // holds bytes [begin, end); its memory starts at byte `base`
    Buffer* buffer;
  };
  std::vector<Piece> pieces;  // by increasing begin; empty: not allocated yet
  uint64_t bytes = 0;

  // Allocation size of a piece.
  static uint64_t size_of(const Piece& p) {
    return (p.end - p.base + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
  }
  // The piece that contains a byte; nullptr beyond the end.
  const Piece* piece_of(uint64_t offset) const;
};

// Counts expensive operations, so that tests can enforce the engine's promises. `uploads` are all writes,
// `downloads` all reads.
struct Counters {
  uint64_t launches = 0, replays = 0, recordings = 0, kernels_loaded = 0;
  uint64_t uploads = 0, uploaded_bytes = 0, downloads = 0, downloaded_bytes = 0, allocations = 0;
};

class Executable {
 public:
  // `kernel_of` returns the kernel of a table row, and loads it on first use.
  template <class KernelOf>
  static Failure make(const gimbal_program& p, const Rows& rows, const Limits& limits, const Cuts& cuts,
                      KernelOf kernel_of, std::unique_ptr<Executable>* out) {
    std::unique_ptr<Executable> e(new Executable(p));
    auto add = [&](const Row& row, const OpPlan& plan) -> Failure {
      std::vector<Kernel*> kernels(plan.launches.size());
      for (size_t i = 0; i < kernels.size(); i++) {
        const char* own = plan.launches[i].kernel;
        if (Failure f = kernel_of(own ? own : row.kernel, &kernels[i])) return f;
      }
      return e->add(p, plan, kernels), Failure();
    };
    if (Failure f = for_each_op(p, rows, limits, cuts, add)) return f;
    *out = std::move(e);
    return {};
  }

  // The scratch_bytes() of such an executable.
  static Failure plan_scratch(const gimbal_program& p, const Rows& rows, const Limits& limits,
                              const Cuts& cuts, uint64_t* out) {
    uint64_t most = 0, constants = 0;
    const Failure f = for_each_op(p, rows, limits, cuts, [&](const Row&, const OpPlan& plan) {
      most = std::max(most, plan.scratch_bytes), constants += plan.constants.size() * 4;
      return Failure();
    });
    *out = most + constants;
    return f;
  }

  // The step's rows, clamped to the program's capacity.
  gimbal_step fitting(gimbal_step) const;
  // The recording for these buffers, created on first use. `nothing` is bound where a launch reads nothing.
  Failure recording(Runtime&, DeviceBuffer* const* slots, size_t n, Binding nothing, Binding step, Counters&,
                    Recording** out);
  // Discards the recordings bound to a buffer (nullptr: all of them).
  void forget(Runtime&, const DeviceBuffer*);
  size_t launches() const { return launches_.size(); }
  // Memory for intermediate data between the launches of an op; allocated by the device at compile time.
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  DeviceBuffer* scratch = nullptr;
  // Written by the device at compile time; empty: the program has none.
  std::span<const uint32_t> constant_words() const { return constant_words_; }
  DeviceBuffer* constants = nullptr;
  void replayed() { replays_++; }
  // Number of times each op was launched, all its launches counted.
  void run_counts(uint64_t* counts, size_t n_ops) const;

 private:
  struct Planned : PlannedLaunch {
    Kernel* kernel;
  };
  struct Touched {  // since the last wait for earlier launches
    uint32_t slot;
    uint64_t begin, end;
    bool written;
  };
  struct Recorded {
    std::vector<DeviceBuffer*> slots;
    Recording* recording;
  };

  template <class Use>
  static Failure for_each_op(const gimbal_program& p, const Rows& rows, const Limits& limits,
                             const Cuts& cuts, Use use) {
    for (size_t i = 0; i < p.n_ops; i++) {
      OpPlan plan{p.ops[i], p.values, limits, cuts, {}, 0, {}, {}};
      const Row& row = rows.rows[p.ops[i].kernel];
      row.plan(plan);
      if (plan.failure) return plan.failure;
      if (Failure f = use(row, plan)) return f;
    }
    return {};
  }

  explicit Executable(const gimbal_program&);
  void add(const gimbal_program&, const OpPlan&, std::span<Kernel* const>);
  bool must_wait(const gimbal_program&, const OpPlan&);
  Failure resolve(const Place&, DeviceBuffer* const* slots, size_t n, Binding* out) const;

  std::vector<Planned> launches_;
  std::vector<size_t> launches_of_;  // by op
  uint64_t replays_ = 0, scratch_bytes_ = 0;
  std::vector<uint32_t> constant_words_;
  std::vector<Touched> touched_;
  std::vector<Recorded> recorded_;
  gimbal_step room_{INT32_MAX, INT32_MAX};
};

}  // namespace gimbal::gpu
