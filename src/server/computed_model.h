// A model computed by this process: the base of models loaded by the engine (local_model.h) and by
// single-backend programs (apps/worker).
#pragma once
#include "runtime/memory_check.h"
#include "scheduler/scheduler_thread.h"
#include "server/model.h"

namespace gimbal {

// Sets the run options to answer `parallel` texts at once; returns the cache size to plan for. `context`:
// positions per text; `cache_tokens`: for all texts, 0: the free memory; `models`: number that share the
// devices.
CacheBudget plan_for_many(RunOptions&, int context, int parallel, int64_t cache_tokens, int models,
                          int together = 1);

class ComputedModel : public ServedModel {
 public:
  const std::string& id() const override { return id_; }
  const ModelSource& file() const override { return *file_; }
  const Tokenizer& tokenizer() const override { return scheduler_ ? scheduler_->tokenizer() : *tokenizer_; }
  const ChatTemplate& chat() const override { return *chat_; }
  int context() const override { return context_; }
  int texts_at_once() const override { return explanations_.empty() ? 1 : explanations_[0].sequences; }
  uint64_t device_bytes() const override;
  std::vector<ReceiptLine> kernels() const override { return kernels_; }
  std::vector<Explanation> explanations() const override { return explanations_; }
  std::vector<DeviceUse> devices() const override { return devices_; }
  GenerationService* generation() override { return scheduler_.get(); }
  SchedulerThread* scheduler() { return scheduler_.get(); }
  std::vector<SchedulerNumbers> numbers() override;

 protected:
  ComputedModel(std::string id, std::shared_ptr<const ModelSource> file)
      : id_(std::move(id)), file_(std::move(file)) {}

  void computed_by(const Model&);       // sets kernels() and explanations(), and adds the model's devices
  void uses_devices(const ModelPlan&);  // adds them
  // Creates the scheduler; call it before generating. The model must be planned with plan_for_many().
  // Errors: those of Tokenizer::create and SchedulerThread::create.
  Status generate_on(ModelPtr, OnDeviceLost, const SchedulerOptions&);
  // For models that generate no text. Errors: those of Tokenizer::create.
  Status read_tokenizer();
  // Call it after one of the two above. Errors: those of ChatTemplate::of.
  Status read_template();
  // Cancels running texts. For destructors: the scheduler may still use members that they destroy.
  void end_texts() { scheduler_ = nullptr; }

  int context_ = 0;

 private:
  const std::string id_;
  const std::shared_ptr<const ModelSource> file_;
  std::vector<ReceiptLine> kernels_;
  std::vector<Explanation> explanations_;
  std::vector<DeviceUse> devices_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<SchedulerThread> scheduler_;
  std::unique_ptr<ChatTemplate> chat_;
};

}  // namespace gimbal
