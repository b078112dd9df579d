#include "apps/serving/model_loading.h"

#include "llama/library_service.h"

namespace gimbal {
namespace {

// Its kernels, memory and devices are the library's, and unknown here.
class LibraryServed final : public ServedModel {
 public:
  LibraryServed(std::string id, std::shared_ptr<const ModelSource> file, std::string path,
                ChosenLibrary chosen)
      : id_(std::move(id)), file_(std::move(file)), path_(std::move(path)), chosen_(std::move(chosen)) {}

  Status open() {
    auto tokenizer = Tokenizer::create(file_->metadata());
    if (!tokenizer) return tokenizer.error();
    tokenizer_ = std::move(*tokenizer);
    auto chat = ChatTemplate::of(file_->metadata(), *tokenizer_);
    if (!chat) return chat.error();
    chat_ = std::make_unique<ChatTemplate>(std::move(*chat));
    auto service = llama::LibraryService::create([this] { return start_library(chosen_, path_); },
                                                 *tokenizer_, chosen_.texts);
    if (!service) return service.error();
    service_ = std::move(*service);
    return Done{};
  }

  const llama::LibraryService& service() const { return *service_; }

  const std::string& id() const override { return id_; }
  const ModelSource& file() const override { return *file_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate& chat() const override { return *chat_; }
  int context() const override { return chosen_.texts.context; }
  uint64_t device_bytes() const override { return 0; }
  std::vector<SchedulerNumbers> numbers() override { return {service_->numbers()}; }
  std::vector<ReceiptLine> kernels() const override {
    return {{.op = "model",
             .format = "",
             .device = kLibraryBackend,
             .kernel = service_->library().path,
             .why = describe(chosen_, service_->library()),
             .ops = 1,
             .runs = 0,
             .not_counted = "a library does not tell which kernels it runs"}};
  }
  std::vector<Explanation> explanations() const override {
    Explanation e;
    e.layers = service_->model().layers, e.context = context(), e.sequences = 1;
    e.placement = {{kLibraryBackend, "the whole model", describe(chosen_, service_->library())}};
    return {e};
  }
  std::vector<DeviceUse> devices() const override { return {{kLibraryBackend, true, 0}}; }
  Status renew() override {
    service_->restart();
    return Done{};
  }
  GenerationService* generation() override { return service_.get(); }
  Status embed(std::span<const std::vector<Token>>, const EmbeddingSink&) override {
    return Error{Code::Usage, "embeddings need gimbal's own engine, and --backend llama.cpp runs a library",
                 "serve the model without --backend llama.cpp"};
  }

 private:
  const std::string id_;
  const std::shared_ptr<const ModelSource> file_;
  const std::string path_;
  const ChosenLibrary chosen_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_;
  std::unique_ptr<llama::LibraryService> service_;  // ends first: its thread uses the others
};

}  // namespace

Result<ServedModelPtr> load_library_model(std::string id, const ModelFile& source, std::string model_path,
                                          ChosenLibrary chosen) {
  auto made =
      std::make_shared<LibraryServed>(std::move(id), source.file, std::move(model_path), std::move(chosen));
  if (auto ok = made->open(); !ok) return ok.error();
  return ServedModelPtr(std::move(made));
}

}  // namespace gimbal
