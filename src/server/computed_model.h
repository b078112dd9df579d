// What every model has that this process computes, whoever loaded it: the engine (local_model.h), or a
// program with a single backend (apps/worker).
#pragma once
#include "runtime/cache_size.h"
#include "scheduler/scheduler.h"
#include "server/model.h"

namespace gimbal {

// What a model is planned with to answer `parallel` texts at once. Answers how much cache it should get.
// `context`: of each text; `cache_tokens`: for all of them, 0: what is free; `models`: that share the
// devices.
CacheWish plan_for_many(RunOptions&, int context, int parallel, int64_t cache_tokens, int models,
                        int together = 1);

class ComputedModel : public ServedModel {
 public:
  const std::string& id() const override { return id_; }
  const ModelSource& file() const override { return *file_; }
  const Tokenizer& tokenizer() const override { return scheduler_ ? scheduler_->tokenizer() : *tokenizer_; }
  const ChatTemplate& chat() const override { return *chat_; }
  int context() const override { return context_; }
  uint64_t device_bytes() const override;
  std::vector<ReceiptLine> kernels() const override { return kernels_; }
  std::vector<Explanation> explanations() const override { return explanations_; }
  std::vector<DeviceUse> devices() const override { return devices_; }
  GenerationService* generation() override { return scheduler_.get(); }
  std::vector<SchedulerNumbers> numbers() override;

 protected:
  ComputedModel(std::string id, std::shared_ptr<const ModelSource> file)
      : id_(std::move(id)), file_(std::move(file)) {}

  void computed_by(const Model&);       // sets kernels() and explanations(), and adds its devices
  void uses_devices(const ModelPlan&);  // adds them
  // Texts from here on; the model was planned with plan_for_many(). Errors: those of Tokenizer::create and
  // Scheduler::create.
  Status generate_on(ModelPtr, OnDeviceLost, const SchedulerOptions&);
  // Where no texts are generated. Errors: those of Tokenizer::create.
  Status read_tokenizer();
  // Behind one of the two above. Errors: those of ChatTemplate::of.
  Status read_template();
  // Cancels what runs. For destructors: of what they destroy, the scheduler may still use something.
  void end_texts() { scheduler_ = nullptr; }

  int context_ = 0;

 private:
  const std::string id_;
  const std::shared_ptr<const ModelSource> file_;
  std::vector<ReceiptLine> kernels_;
  std::vector<Explanation> explanations_;
  std::vector<DeviceUse> devices_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<ChatTemplate> chat_;
};

}  // namespace gimbal
