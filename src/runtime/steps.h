// Runs steps: uploads a batch to the devices, computes the plan's stages one after the other, and reads
// back the requested outputs. Holds all host memory that steps need.
#pragma once
#include <cstddef>
#include <functional>

#include "runtime/batch.h"
#include "runtime/expert_cache.h"
#include "runtime/model_plan.h"

namespace gimbal {

// The device memory of one stage of a plan.
struct StageMemory {
  std::unique_ptr<ExpertCache> experts;  // of a stage with DiskExperts: its weights
  Buffer buffers[kSlots];
  std::vector<std::vector<Executable>> executables;  // of the buckets, by Bucket::parts
  std::vector<Executable> top;                       // of Stage::top
};

class Steps {
 public:
  // Both outlive it; `memory` has one element per stage of the plan.
  Steps(const ModelPlan& plan, std::vector<StageMemory>& memory);

  // Called for each value that passes from one stage to another, before the latter computes: the receiving
  // stage, the value's index in its program, and the rows, valid during the call.
  using TransferWatcher = std::function<void(size_t stage, uint16_t value, std::span<const std::byte> rows)>;
  void watch(TransferWatcher watcher) { watcher_ = std::move(watcher); }

  // Copies the first bytes of a value of a stage's program from its device. Errors: the device's.
  using ReadValue = std::function<Status(uint16_t value, std::span<std::byte> to)>;
  // Called for each stage after it has computed a step, with the bucket that did. Inputs of matrix products
  // are readable if the plan was made with RunOptions::keep_inputs. An error fails the step.
  using StageWatcher =
      std::function<Status(size_t stage, size_t bucket, gimbal_step step, const ReadValue& read)>;
  void watch_stages(StageWatcher watcher) { stage_watcher_ = std::move(watcher); }

  SequencePool& sequences() { return sequences_; }
  // See Model::forward() and Model::logits_of().
  Result<StepOutput> forward(const Batch&);
  Result<std::span<const float>> logits_of(size_t k);
  // Passes all device state of a sequence through `page`, one page at a time, always in the same order.
  // `from_device`: `page` receives the bytes; else it provides them.
  Status pass_pages(const Sequence&, bool from_device,
                    const std::function<Status(std::span<std::byte>)>& page);
  // One page of a pool: the bytes of all its states, one after the other in the order of the layers.
  uint64_t page_bytes(size_t pool) const;
  Status pass_page(size_t pool, int32_t page, bool from_device, std::span<std::byte>);

 private:
  struct StateRef {
    size_t stage;
    uint16_t pool;
    uint64_t offset, page_bytes;  // in the stage's cache
  };
  std::vector<StateRef> states() const;
  Status pass(const StateRef&, int32_t page, bool from_device, std::span<std::byte>);
  Status prepare(const Batch&);
  Status check(const Batch&, const Row&) const;
  Status compute(const Batch&, size_t bucket, gimbal_step);
  Status copy_pages();
  void write_inputs(const Batch&, const Bucket&);
  Status run_part(size_t stage, size_t part, size_t bucket, gimbal_step);
  Status provide_experts(size_t stage, const Bucket&, const PartExperts&, gimbal_step);
  Status read(const Batch&, const Bucket&, Output, bool Wants::*wanted, std::vector<float>& to);
  Status read_states(const Bucket&, size_t rows);
  Status find_top(int k, gimbal_step);
  Status submit(const Device&, StageMemory&, Executable&, gimbal_step);

  struct Turn {
    size_t turn, stage, part;
  };

  const ModelPlan& plan_;
  std::vector<StageMemory>& memory_;
  std::vector<std::vector<Turn>> turns_;  // by bucket: the parts of all stages, in their order
  SequencePool sequences_;
  // By stage: the contents of its step slot, in the slot's layout. First the step's own data, the same for
  // all stages; then the values transferred from other stages.
  std::vector<std::vector<std::byte>> staging_;
  std::vector<StepRow> rows_;                          // of the step
  AdapterSet adapters_ = 0;                            // that they use
  std::vector<RopePositions> places_;                  // by sequence of the step, behind its last row
  std::vector<InputItem> inputs_;                      // theirs
  std::vector<std::byte> page_;                        // a page in transit
  std::vector<float> logits_, hidden_, top_, states_;  // read back
  StepOutput output_;
  TransferWatcher watcher_;
  StageWatcher stage_watcher_;
};

}  // namespace gimbal
