// A program made ready for the CPU: its kernels, and the walk of the threads over its phases.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "backends/cpu/buffer.h"
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/schedule.h"
#include "backends/cpu/team.h"

namespace gimbal::cpu {

class Compiled {
 public:
  // `table` outlives this; the ops name its rows.
  Compiled(const gimbal_program&, const CpuKernel* table);
  // Computes one step, on the buffers that the values' slots name. Takes no memory. One call at a time.
  void run(gimbal_buffer* const* slots, size_t n_slots, gimbal_step, Team&);

 private:
  struct Op {
    CpuTask task;
    const CpuKernel* kernel;
    const gimbal_value* rows;  // says how many there are
    CpuWork work;              // of this step
  };
  struct Portion {           // of a phase: one chain
    int64_t rows_at_once;    // before the chain's next op; as many as stay in the cache
    int64_t units, at_once;  // in this step: how many, and of which number shares are multiples
  };
  struct alignas(64) Turn {  // of a phase, in this step; counted up by all threads, so on a line of its own
    std::atomic<int64_t> next;  // the first unit that nobody has taken; chain after chain
    int64_t units;              // of all its chains
    bool together;              // worth the attention of several threads
  };
  void bind(gimbal_buffer* const* slots, size_t n_slots);
  size_t plan_step(gimbal_step, int threads);
  size_t next_together(size_t phase) const;
  void compute_alone(size_t begin, size_t end);
  void compute_together(size_t phase, int threads);
  void compute_units(uint32_t chain, int64_t begin, int64_t end);
  void walk(Team&);

  std::vector<gimbal_value> values_;
  std::vector<gimbal_op> program_;
  Schedule schedule_;
  std::vector<Op> ops_;                 // in the order of the schedule
  std::vector<Portion> portions_;       // of the schedule's chains
  std::unique_ptr<Turn[]> turns_;       // of its phases
  std::vector<unsigned char*> memory_;  // of the slots, where ops_ are bound to
};

}  // namespace gimbal::cpu
