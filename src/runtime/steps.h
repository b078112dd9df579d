// Runs steps: a batch goes up to the devices, passes the plan's stages one after the other, and what was
// asked for comes back. Holds all host memory that steps need.
#pragma once
#include <cstddef>
#include <functional>

#include "runtime/batch.h"
#include "runtime/model_plan.h"

namespace gimbal {

// What one stage of a plan holds on its device.
struct StageMemory {
  Buffer buffers[kSlots];
  std::vector<Executable> executables;  // of the buckets
  std::vector<Executable> top;          // of Stage::top
};

class Steps {
 public:
  // Both outlive it; `memory` by the plan's stages.
  Steps(const ModelPlan& plan, std::vector<StageMemory>& memory);

  SequencePool& sequences() { return sequences_; }
  // See Model::forward() and Model::logits_of().
  Result<StepOutput> forward(const Batch&);
  Result<std::span<const float>> logits_of(size_t k);
  // All that the devices hold of a sequence, a page of a state at a time, always in the same order:
  // `from_device` gives the bytes to `page`, else takes them from there.
  Status pass_pages(const Sequence&, bool from_device,
                    const std::function<Status(std::span<std::byte>)>& page);

 private:
  Status prepare(const Batch&);
  Status check(const Batch&, const Row&) const;
  Status compute(const Batch&, size_t bucket, gimbal_step);
  Status copy_pages();
  void write_inputs(const Batch&, const Bucket&);
  Status run_stage(size_t stage, size_t bucket, gimbal_step);
  Status read(const Batch&, const Bucket&, Output, bool Wants::*wanted, std::vector<float>& to);
  Status read_states(const Bucket&, size_t rows);
  Status find_top(int k, gimbal_step);
  Status submit(const Device&, StageMemory&, Executable&, gimbal_step);

  const ModelPlan& plan_;
  std::vector<StageMemory>& memory_;
  SequencePool sequences_;
  // By stage: what is written to its step slot, laid out as there. The step's own data comes first, the same
  // for all; behind it what other stages transfer.
  std::vector<std::vector<std::byte>> staging_;
  std::vector<StepRow> rows_;                          // of the step
  std::vector<InputItem> inputs_;                      // theirs
  std::vector<std::byte> page_;                        // on its way from one place to another
  std::vector<float> logits_, hidden_, top_, states_;  // read back
  StepOutput output_;
};

}  // namespace gimbal
