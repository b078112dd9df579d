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
  // `table` outlives this; the ops name its rows. For a team of `threads`.
  Compiled(const gimbal_program&, const CpuKernel* table, int threads);
  // Computes one step, on the buffers that the values' slots name. Takes no memory. One call at a time.
  void run(gimbal_buffer* const* slots, size_t n_slots, gimbal_step, Team&);
  // How often each op of the program was computed, in the program's order.
  void run_counts(uint64_t* counts, size_t n_ops) const;

 private:
  struct Op {
    CpuTask task;
    const CpuKernel* kernel;
    const gimbal_value* rows;  // says how many there are
    CpuWork work;              // of this step
    uint64_t runs = 0;         // counted by who computes the first unit
  };
  struct Portion {         // of a phase: one chain
    size_t phase;          // whose it is
    int64_t rows_at_once;  // before the chain's next op; as many as stay in the cache
    int64_t at_once;       // in this step: of which number of units shares are multiples
    bool twice;            // in this step: a share may be computed by two threads
  };
  struct alignas(64) Turn {         // of a phase, in this step
    bool together = false;          // worth the attention of several threads
    std::atomic<int64_t> left = 0;  // units whose values are not in their place yet
  };
  // The units of a chain that a member of the team begins with. Neighbours lie side by side in memory, and
  // what comes next is asked for ahead of time (kernels/memory.h): so a member stays where it is, and only
  // helps others when it has nothing left. It goes through them in rounds, of one unit each; or, in two
  // streams, of one unit of the first half and one of the second. Counted up by all, so on a line of its own.
  struct alignas(64) Part {
    std::atomic<int64_t> next;   // the first round that nobody has taken
    int64_t begin, end, rounds;  // the second half, if there is one, begins at begin + rounds
  };
  // The share that a member computes in memory of its own, where it is one that can be computed twice.
  // Whoever takes this word away first puts the values into their place.
  struct alignas(64) Held {
    std::atomic<uint64_t> share{0};
  };
  void bind(gimbal_buffer* const* slots, size_t n_slots);
  size_t plan_step(gimbal_step);
  void plan_parts(uint32_t chain);
  size_t next_together(size_t phase) const;
  void walk(Team&, int member);
  void compute_alone(size_t begin, size_t end);
  void compute_together(size_t phase, int member);
  void compute_part(size_t part, Held& mine);
  void compute_units(uint32_t chain, int64_t begin, int64_t end);
  void compute_held(Held&, uint64_t share);
  void compute_what_others_hold(size_t phase, int member);
  void finish_units(size_t phase, int64_t units);

  std::vector<gimbal_value> values_;
  std::vector<gimbal_op> program_;
  Schedule schedule_;
  std::vector<Op> ops_;            // in the order of the schedule
  std::vector<Portion> portions_;  // of the schedule's chains
  std::unique_ptr<Turn[]> turns_;  // of its phases
  const int threads_;
  std::unique_ptr<Part[]> parts_;  // of the first chain's members, then of the second's
  std::unique_ptr<Held[]> held_;   // of the members
  // The phase whose units may be computed now. It goes on to the next when the last value of this one is in
  // its place, whoever put it there: nobody waits for a thread, only for values.
  std::atomic<size_t> phase_{0};
  Signal phase_opened_;
  std::vector<unsigned char*> memory_;  // of the slots, where ops_ are bound to
};

}  // namespace gimbal::cpu
