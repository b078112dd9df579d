#include "server/computed_model.h"

#include <algorithm>
#include <numeric>

namespace gimbal {
namespace {

constexpr int64_t kModestCache = 32768;  // tokens, or 4 contexts where these are more

}  // namespace

CacheBudget plan_for_many(RunOptions& run, int context, int parallel, int64_t cache_tokens, int models,
                          int together) {
  run.context = context;
  run.sequences = run.logit_rows = parallel;
  run.batch = std::max(run.batch, parallel);
  run.cache_positions = cache_tokens ? cache_tokens : context;
  if (cache_tokens) return {};
  const int64_t whole = int64_t(context) * parallel;
  return {whole, std::min(whole, std::max(int64_t(context) * 4, kModestCache)), models, together};
}

std::vector<SchedulerNumbers> ComputedModel::numbers() {
  if (!scheduler_) return {};
  return {scheduler_->numbers()};
}

void ComputedModel::computed_by(const Model& model) {
  kernels_ = model.receipt();
  explanations_ = {explain(model.plan())};
  uses_devices(model.plan());
}

void ComputedModel::uses_devices(const ModelPlan& plan) {
  for (DeviceUse& used : device_uses(plan)) {
    const auto same = std::find_if(devices_.begin(), devices_.end(),
                                   [&](const DeviceUse& known) { return known.device == used.device; });
    if (same != devices_.end()) same->bytes += used.bytes;
    else devices_.push_back(std::move(used));
  }
}

uint64_t ComputedModel::device_bytes() const {
  return std::accumulate(devices_.begin(), devices_.end(), uint64_t(0),
                         [](uint64_t sum, const DeviceUse& d) { return sum + d.bytes; });
}

Status ComputedModel::generate_on(ModelPtr model, OnDeviceLost on_device_lost,
                                  const SchedulerOptions& options) {
  computed_by(*model);
  auto tokenizer = Tokenizer::create(file_->metadata());
  if (!tokenizer) return tokenizer.error();
  auto scheduler =
      SchedulerThread::create(std::move(model), std::move(*tokenizer), std::move(on_device_lost), options);
  if (!scheduler) return scheduler.error();
  scheduler_ = std::move(*scheduler);
  context_ = std::min(context_, scheduler_->capacity());
  return Done{};
}

Status ComputedModel::read_tokenizer() {
  auto tokenizer = Tokenizer::create(file_->metadata());
  if (!tokenizer) return tokenizer.error();
  tokenizer_ = std::move(*tokenizer);
  return Done{};
}

Status ComputedModel::read_template() {
  auto chat = ChatTemplate::of(file_->metadata(), tokenizer());
  if (!chat) return chat.error();
  chat_ = std::make_unique<ChatTemplate>(std::move(*chat));
  return Done{};
}

}  // namespace gimbal
