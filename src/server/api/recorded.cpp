// Runs each handler with a FieldRecorder, over a model that computes nothing.
#include <algorithm>
#include <optional>

#include "files/gguf.h"
#include "model/embedded_model.h"
#include "server/api/call.h"
#include "server/api/openapi.h"

namespace gimbal::api {
namespace {

// Readers follow the first word of a field, then the second in the next round, and so on.
constexpr int kRounds = 16;

// The built-in model's words and template, for settings that depend on a vocabulary.
class WordsOnly final : public ServedModel {
 public:
  static std::shared_ptr<WordsOnly> create() {
    auto file = parse_gguf(embedded_model(), "the built-in model");
    auto tokenizer =
        file ? Tokenizer::create(file->metadata()) : Result<std::unique_ptr<Tokenizer>>(file.error());
    if (!tokenizer) return nullptr;
    auto chat = ChatTemplate::of(file->metadata(), **tokenizer);
    if (!chat) return nullptr;
    return std::shared_ptr<WordsOnly>(
        new WordsOnly(std::move(*file), std::move(*tokenizer), std::move(*chat)));
  }
  const std::string& id() const override { return id_; }
  const ModelSource& file() const override { return file_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate& chat() const override { return chat_; }
  int context() const override { return INT32_MAX; }
  uint64_t device_bytes() const override { return 0; }
  std::vector<SchedulerNumbers> numbers() override { return {}; }
  std::vector<ReceiptLine> kernels() const override { return {}; }
  std::vector<Explanation> explanations() const override { return {}; }
  std::vector<DeviceUse> devices() const override { return {}; }
  Status renew() override { return nothing(); }
  GenerationService* generation() override { return &service_; }
  Status embed(std::span<const std::vector<Token>>, const EmbeddingSink&) override { return nothing(); }

 private:
  struct Service final : GenerationService {
    Status submit(uint64_t, GenerationRequest, GenerationSink) override { return nothing(); }
    void cancel(uint64_t) override {}
  };
  WordsOnly(ModelSource file, std::unique_ptr<Tokenizer> tokenizer, ChatTemplate chat)
      : file_(std::move(file)), tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}
  static Status nothing() { return Error{Code::Unsupported, "this model computes nothing", ""}; }

  const std::string id_ = "x";
  ModelSource file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatTemplate chat_;
  Service service_;
};

class WordsOnlyModels final : public Models {
 public:
  explicit WordsOnlyModels(std::shared_ptr<WordsOnly> model) : model_(std::move(model)) {}
  std::vector<KnownModel> list() override { return {{.id = model_->id(), .path = ""}}; }
  std::vector<ServedModelPtr> loaded() override { return {}; }
  Result<ServedModelPtr> get(const std::string&) override { return ServedModelPtr(model_); }
  Result<std::shared_ptr<const ModelSource>> file(const std::string&) override {
    return std::shared_ptr<const ModelSource>(model_, &model_->file());
  }
  std::string digest(const std::string&) override { return {}; }

 private:
  const std::shared_ptr<WordsOnly> model_;
};

class NoExchange final : public http::Exchange {
 public:
  void answer(http::Response) override {}
  void stream(std::shared_ptr<http::Source>) override {}
  void open(http::Response, std::shared_ptr<http::Messages>) override {}
  void wake() override {}
};

class Recorder final : public FieldRecorder {
 public:
  Recorder(FieldsSeen& root, int round) : root_(root), round_(size_t(round)), bit_(1u << round) {}
  bool whole() const { return whole_; }

  Json sample(const std::string& path, const FieldRead& read) override {
    FieldsSeen& field = at(path);
    const auto same = [&](const FieldRead& r) { return r.kind == read.kind; };
    if (std::none_of(field.reads.begin(), field.reads.end(), same)) field.reads.push_back(read);
    switch (read.kind) {
      case FieldRead::Number: return read.low;
      case FieldRead::Whole: return int64_t(std::max(read.low, -1e15));
      case FieldRead::Flag: return false;
      case FieldRead::Word: return read.words[round_ % read.words.size()];
      case FieldRead::Object: return Json::object();
      case FieldRead::List: return Json::array({Json::object()});
      default: return "x";
    }
  }
  void needed(const std::string& path) override { at(path).needed |= bit_; }
  void finished(const std::string& path) override {
    whole_ |= path.empty();
    at(path).closed = true;
  }

 private:
  // "messages[0].role" is `role` of the elements of `messages`.
  FieldsSeen& at(const std::string& path) {
    FieldsSeen* here = &root_;
    here->rounds |= bit_;
    for (size_t from = 0; from < path.size();) {
      const size_t end = std::min(path.find_first_of(".[", from), path.size());
      if (end > from) here = &here->fields[path.substr(from, end - from)];
      here->rounds |= bit_;
      from = end;
      if (from == path.size()) break;
      if (path[from] == '[') {
        if (!here->element) here->element = std::make_shared<FieldsSeen>();
        here = here->element.get();
        from = std::min(path.find(']', from), path.size() - 1);
      }
      from++;
    }
    here->rounds |= bit_;
    return *here;
  }

  FieldsSeen& root_;
  const size_t round_;
  const uint32_t bit_;
  bool whole_ = false;
};

std::vector<Endpoint> recorded() {
  std::vector<Endpoint> all;
  const auto model = WordsOnly::create();
  if (!model) return all;
  WordsOnlyModels models(model);
  Services services{models, "", [] { return std::string(); }};
  for (const Route& route : routes()) {
    Endpoint& e =
        all.emplace_back(Endpoint{route.method, route.handle == stream_job ? "/v1/jobs/*/stream" : route.path,
                                  route.access == Route::Open});
    const Handle handle = route.handle == open_socket ? socket_message : route.handle;
    e.socket = handle != route.handle;
    if (e.method != "POST" && !e.socket) continue;
    if (route.list) e.list = route.list;
    if (route.file) e.file = route.file;
    for (int round = 0; round < kRounds; round++) {
      Call call{services,
                {},
                std::make_shared<NoExchange>(),
                dialect_of(e.path),
                "",
                std::make_shared<RequestRecord>(),
                {},
                {},
                {},
                Json::object()};
      Recorder recorder(e.body, round);
      handle(call);
      e.whole = e.whole && recorder.whole();
    }
  }
  return all;
}

}  // namespace

const std::vector<Endpoint>& endpoints() {
  static const std::vector<Endpoint> all = recorded();
  return all;
}

}  // namespace gimbal::api
