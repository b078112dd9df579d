// A program compiled for the CPU, and its execution by the workers of a thread pool.
//
// The terms of this backend's scheduling:
//   work item  an independent piece of an op: a row, a tile of 16 outputs, a head (CpuWork)
//   group      fused ops: one op, or ops by row that a worker computes one after the other for each row
//   part       the elements of one work item, of a value between ops by element that has no memory
//   level      groups that share no memory which one of them writes; workers synchronize between levels
//   range      the neighbouring items of a group with which a worker begins before it helps the others
//   round      one item of a range; or, read in two streams, an item of its first and one of its second half
//   chunk      the rounds of a range that a worker claims at once
//   in flight  a chunk that its worker computes in scratch memory; an idle worker may compute it, too
//   straggler  a worker that still computes a chunk which other workers have completed in its place
//
// No access here is a data race, by the letter of C++:
// * Parts: a value without memory is in memory of the worker that computes the part.
// * Levels: a level reads only values written before the step, or by an earlier level. A worker that has
//   stored values subtracts their items from LevelState::items_left (acquire and release). So the worker that
//   subtracts the last one sees all values. It sets level_, which every worker reads before it computes the
//   next level.
// * Writes: every value of a level is written by one thread. Chunks are claimed by compare-exchange from
//   Range::next. A chunk in flight is computed in scratch memory, by any number of workers, and copied to its
//   place by the one whose InFlight::claim() succeeds.
// * Stragglers: they read weights, step data, and activations that no later op of the program overwrites
//   (overwritten_later() in schedule.h; programs for one row are planned so, program/passes.h), and they
//   write scratch memory. The next step is the first that overwrites their inputs, and run() returns only
//   when all workers, including stragglers, have finished.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "backends/cpu/in_flight.h"
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/schedule.h"
#include "backends/cpu/thread_pool.h"

// Memory of the CPU device, bound to programs.
struct gimbal_buffer {
  unsigned char* data;
  size_t mapped;         // bytes from mmap; 0: from aligned_alloc
  bool adopted = false;  // the caller's memory, read only
};

namespace gimbal::cpu {

// At least n bytes, aligned to 64, of zeros. Throws std::bad_alloc.
gimbal_buffer* new_buffer(size_t n);
void delete_buffer(gimbal_buffer*);

class CompiledProgram {
 public:
  // `table` must outlive this; the ops contain its indices. For a pool of `threads` threads.
  CompiledProgram(const gimbal_program&, const CpuKernel* table, int threads);
  // Computes one step on the buffers of the slots. Allocates nothing but the kernels' scratch memory, until
  // it returns. One call at a time.
  void run(gimbal_buffer* const* slots, size_t n_slots, gimbal_step, ThreadPool&);
  // The number of executions of each op, in program order.
  void run_counts(uint64_t* counts, size_t n_ops) const;

 private:
  struct Part {   // of a value without memory, in the worker's own
    int operand;  // an input; -1: the output
    size_t element, place;
  };
  struct Op {
    CpuTask task;
    const CpuKernel* kernel;
    const gimbal_value* rows;      // its extent defines the number of rows
    CpuWork work;                  // of this step
    uint64_t runs = 0;             // incremented with the op's first item
    size_t scratch = 0;            // where its scratch memory begins
    std::vector<Part> parts = {};  // its operands without memory
  };
  struct GroupState {
    size_t level;
    int64_t rows_at_once;  // before the group's next op: as many as fit in the cache
    bool inputs_kept;      // no later op overwrites this op's inputs
    // Of this step:
    int64_t items_at_once;  // chunks are multiples of it
    bool in_flight;         // chunks are computed in scratch memory, possibly twice
  };
  struct alignas(64) LevelState {  // of this step
    bool parallel = false;         // large enough to share among workers
    std::atomic<int64_t> items_left = 0;
  };
  // Neighbouring items are adjacent in memory, and the next one is prefetched (kernels/memory.h), so a worker
  // stays in its range as long as possible. All workers increment `next`, so it has its own cache line.
  struct alignas(64) Range {
    std::atomic<int64_t> next;   // the first unclaimed round
    int64_t begin, end, rounds;  // an optional second half begins at begin + rounds
  };

  void plan_scratch();
  void place_parts(Group);
  void bind(gimbal_buffer* const* slots, size_t n_slots);
  size_t plan_step(gimbal_step);
  void plan_ranges(uint32_t group);
  size_t next_parallel(size_t level) const;
  void work(ThreadPool&, int worker);
  void compute_level(size_t level, int worker);
  void compute_range(size_t range, int worker);
  void compute_in_flight(InFlight&, const Chunk&, int worker);
  void recompute_in_flight(size_t level, int worker);
  void finish_items(size_t level, int64_t items, int worker);
  void compute_alone(size_t begin, size_t end, int worker);
  void compute_items(uint32_t group, int64_t begin, int64_t end, int worker);
  void compute_parts(Group, int64_t begin, int64_t end, int worker);
  size_t group_of(size_t range) const { return range / size_t(threads_); }

  std::vector<gimbal_value> values_;
  std::vector<gimbal_op> program_;
  Schedule schedule_;
  std::vector<Op> ops_;             // in schedule order
  std::vector<GroupState> groups_;  // of the schedule
  std::unique_ptr<LevelState[]> levels_;
  const int threads_;
  std::unique_ptr<Range[]> ranges_;        // one per worker for the first group, then for the second ...
  std::unique_ptr<InFlight[]> in_flight_;  // of the workers
  // The current level. It advances when the last value of the level is in place, regardless of which thread
  // computed it: workers wait for values, not for threads.
  Event level_;
  std::vector<unsigned char*> memory_;  // of the slots that ops_ are bound to
  size_t scratch_bytes_ = 0;            // of the level that needs most
  // Values without memory: a part of each, for each worker.
  size_t part_bytes_ = 0;
  std::unique_ptr<gimbal_buffer, void (*)(gimbal_buffer*)> parts_{nullptr, delete_buffer};
};

}  // namespace gimbal::cpu
