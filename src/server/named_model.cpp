#include "server/named_model.h"

#include "engine/find_model.h"
#include "server/model_library.h"

namespace gimbal {
namespace {

class NamedModel final : public ServedModel {
 public:
  NamedModel(ServedModelPtr base, std::string id, std::shared_ptr<const ModelPreset> preset)
      : base_(std::move(base)), id_(std::move(id)), preset_(std::move(preset)) {}

  Status read_template() {
    if (!preset_ || preset_->chat_template.empty()) return Done{};
    auto chat = ChatTemplate::of_text(preset_->chat_template, base_->tokenizer());
    if (!chat) return chat.error();
    chat_ = std::make_unique<ChatTemplate>(std::move(*chat));
    return Done{};
  }

  const std::string& id() const override { return id_; }
  const ModelPreset* preset() const override { return preset_.get(); }
  const ChatTemplate& chat() const override { return chat_ ? *chat_ : base_->chat(); }
  const ModelSource& file() const override { return base_->file(); }
  const Tokenizer& tokenizer() const override { return base_->tokenizer(); }
  bool sees() const override { return base_->sees(); }
  bool hears() const override { return base_->hears(); }
  int context() const override { return base_->context(); }
  int texts_at_once() const override { return base_->texts_at_once(); }
  SavedPrompts* saved_prompts() override { return base_->saved_prompts(); }
  uint64_t device_bytes() const override { return base_->device_bytes(); }
  std::vector<SchedulerNumbers> numbers() override { return base_->numbers(); }
  std::vector<ReceiptLine> kernels() const override { return base_->kernels(); }
  std::vector<Explanation> explanations() const override { return base_->explanations(); }
  std::vector<DeviceUse> devices() const override { return base_->devices(); }
  Status renew() override { return base_->renew(); }
  GenerationService* generation() override { return base_->generation(); }
  Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) override {
    return base_->embed(texts, sink);
  }

 private:
  const ServedModelPtr base_;
  const std::string id_;
  const std::shared_ptr<const ModelPreset> preset_;
  std::unique_ptr<ChatTemplate> chat_;
};

}  // namespace

int64_t ModelPreset::context() const {
  const auto at = options.find("num_ctx");
  return at != options.end() && at->is_number_integer() ? at->get<int64_t>() : 0;
}

Result<ServedModelPtr> named_model(ServedModelPtr base, std::string id,
                                   std::shared_ptr<const ModelPreset> preset) {
  auto model = std::make_shared<NamedModel>(std::move(base), std::move(id), std::move(preset));
  if (auto ok = model->read_template(); !ok) return ok.error();
  return ServedModelPtr(std::move(model));
}

Result<LibraryModel> Models::describe(const std::string& id) {
  return Error{Code::NotFound, "", "", reason::kNoSuchModel, "model", id};
}

Status Models::remove(const std::string& id) {
  return Error{Code::NotFound, "", "", reason::kNoSuchModel, "model", id};
}

}  // namespace gimbal
