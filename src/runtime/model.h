// A model ready to run: weights on its devices, programs prepared, memory for its sequences reserved. Nothing
// is allocated on a device after load() returns.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "base/prefault.h"
#include "program/receipt.h"
#include "runtime/steps.h"
#include "runtime/weight_slices.h"

namespace gimbal {

class Model {
 public:
  // Allocates the plan's memory and reads the weights from `file`, from which the plan was made. Errors:
  // Failed for another file; OutOfMemory, before anything is read, if the plan does not fit;
  // Malformed weights; device errors.
  static Result<std::unique_ptr<Model>> load(ModelPlan plan, const ModelSource& file,
                                             const WeightProgress& progress = {});

  const Config& config() const { return plan_.config; }
  const ModelPlan& plan() const { return plan_; }
  // Where the output head is; of an undivided model, where everything is.
  const Device& device() const { return plan_.device(); }
  int context() const { return plan_.options.context; }

  // ---- for one thread at a time
  // Errors: OutOfMemory when there are as many as RunOptions::sequences. The model must outlive them.
  Result<std::unique_ptr<Sequence>> new_sequence() { return steps_->sequences().create(); }
  const SequencePool& sequences() const { return steps_->sequences(); }  // and their pages
  // Computes the rows of a batch and appends them to their sequences. Allocates nothing. Errors: Usage for an
  // invalid batch, with the reason; OutOfMemory when too few pages of the cache are free; after both nothing
  // has changed. After device errors each sequence has its previous tokens.
  Result<StepOutput> forward(const Batch& batch) { return steps_->forward(batch); }
  // All logits of the k-th row with any Wants of the last batch. Errors: the device's.
  Result<std::span<const float>> logits_of(size_t k) { return steps_->logits_of(k); }

  // ---- the state of a sequence, as bytes: engine/prompt_cache.h
  // Errors: the device's; those of `page`.
  using Page = std::function<Status(std::span<std::byte>)>;
  Status save(const Sequence& s, const Page& page) { return steps_->pass_pages(s, true, page); }
  // Into an empty sequence. Errors: those of SequencePool::adopt, of `page` and the device; then it stays
  // empty.
  Status restore(Sequence&, const InputView&, std::span<const uint32_t> first, const Page& page);

  // ---- single pages: runtime/prefix_store.h
  // A page of a pool has the bytes of all its states, in the order of the layers.
  uint64_t page_bytes(size_t pool) const { return steps_->page_bytes(pool); }
  Status read_page(size_t pool, int32_t page, std::span<std::byte> to) {
    return steps_->pass_page(pool, page, true, to);
  }
  Status write_page(size_t pool, int32_t page, std::span<std::byte> from) {
    return steps_->pass_page(pool, page, false, from);
  }
  // See SequencePool::adopt(): the caller fills the pages.
  Status adopt(Sequence& s, const InputView& inputs, std::span<const uint32_t> first) {
    return steps_->sequences().adopt(s, inputs, first);
  }

  // See Steps::watch().
  void watch(Steps::TransferWatcher watcher) { steps_->watch(std::move(watcher)); }
  // See Steps::watch_stages(). An empty watcher ends it.
  void watch_stages(Steps::StageWatcher watcher) { steps_->watch_stages(std::move(watcher)); }

  // Reads of a stage with DiskExperts since load(); zeros for another stage.
  ExpertCache::Counts expert_counts(size_t stage) const {
    return memory_[stage].experts ? memory_[stage].experts->counts() : ExpertCache::Counts{};
  }

  // How load() brought mapped weights into memory; nullopt: it mapped none.
  const std::optional<Prefault::Report>& prefaulted() const { return prefaulted_; }

  // The runs of kernels since load(), by stage: op, device, kernel, reason and number, from the devices' own
  // counters; or that a device does not count. Not while a batch is computed.
  std::vector<ReceiptLine> receipt() const;

 private:
  Model(ModelPlan plan) : plan_(std::move(plan)) {}
  Status take_memory();
  Status read_weights(const ModelSource& file, const WeightProgress& progress);

  ModelPlan plan_;
  std::vector<StageMemory> memory_;  // by the plan's stages
  std::unique_ptr<Steps> steps_;
  std::optional<Prefault::Report> prefaulted_;
};

}  // namespace gimbal
