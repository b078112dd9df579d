// The APIs behind a real socket, over a scripted service and the built-in model's tokenizer.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "files/gguf.h"
#include "model/embedded_model.h"
#include "model/lora.h"
#include "server/api/api.h"
#include "server/named_model.h"
#include "server/scripted_service.h"
#include "support/http_client.h"

namespace gimbal::test {

using Json = nlohmann::ordered_json;

class ScriptedModel final : public ServedModel {
 public:
  ScriptedModel() : ScriptedModel(embedded_model()) {}
  // Of these bytes, which outlive it.
  explicit ScriptedModel(Bytes bytes)
      : file_(*parse_gguf(bytes, "the built-in model")),
        tokenizer_(*Tokenizer::create(file_.metadata())),
        chat_(*ChatTemplate::of(file_.metadata(), *tokenizer_)),
        service(*tokenizer_) {}
  const std::string& id() const override { return id_; }
  const ModelSource& file() const override { return file_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate& chat() const override { return chat_; }
  int context() const override { return context_; }
  const ModelPreset* preset() const override { return preset_ ? &*preset_ : nullptr; }
  void has_preset(ModelPreset preset) { preset_ = std::move(preset); }
  bool sees() const override { return sees_; }
  bool hears() const override { return hears_; }
  void can_see() { sees_ = true; }
  void can_hear() { hears_ = true; }
  int texts_at_once() const override { return 3; }
  std::vector<ReceiptLine> kernels() const override { return {{"mat_mul", "f32", "cpu:0", "k", "why", 1}}; }
  std::vector<Explanation> explanations() const override { return {}; }
  std::vector<DeviceUse> devices() const override { return {}; }
  Status renew() override { return Done{}; }
  uint64_t device_bytes() const override { return 1; }
  std::vector<SchedulerNumbers> numbers() override { return std::vector<SchedulerNumbers>(1); }
  GenerationService* generation() override { return &service; }
  std::vector<float> embedding = {0.6f, -0.8f};
  void is_named(std::string id) { id_ = std::move(id); }
  void has_context(int tokens) { context_ = tokens; }
  Status is_adapted(const Lora& adapter) { return add_lora(file_, adapter); }
  void template_is(const char* source) { chat_.rendering = *Template::parse(source); }
  Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) override {
    for (size_t i = 0; i < texts.size(); i++)
      if (auto ok = sink(i, embedding); !ok) return ok.error();
    return Done{};
  }

 private:
  std::string id_ = "stories";
  int context_ = 256;
  std::optional<ModelPreset> preset_;
  bool sees_ = false, hears_ = false;
  ModelSource file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatTemplate chat_;

 public:
  ScriptedService service;
};

class OneModel final : public Models {
 public:
  // The last one who holds it may be a request that its own engine ends, which cannot wait for itself.
  std::shared_ptr<ScriptedModel> model = shared(new ScriptedModel);
  std::string second;  // the name of another model, which cannot be loaded
  bool none = false;   // a server of all models of a machine that has none
  static std::shared_ptr<ScriptedModel> shared(ScriptedModel* one) {
    return {one, [](ScriptedModel* m) { std::thread([m] { delete m; }).detach(); }};
  }
  std::vector<KnownModel> list() override {
    if (none) return {};
    std::vector<KnownModel> all = {{model->id(), "", model->file().file_bytes(), 1700000000, true, 1}};
    if (!second.empty()) all.push_back({second, ""});
    return all;
  }
  Result<ServedModelPtr> get(const std::string& id) override {
    if (none || id != model->id()) return Error{Code::NotFound, "/a/path/of/ours", ""};
    return ServedModelPtr(model);
  }
  Result<std::shared_ptr<const ModelSource>> file(const std::string& id) override {
    if (id != model->id()) return Error{Code::NotFound, "", ""};
    return std::shared_ptr<const ModelSource>(model, &model->file());
  }
  std::vector<ServedModelPtr> loaded() override { return {model}; }
  std::string digest(const std::string&) override { return "d1"; }
};

class ApiTest : public testing::Test {
 protected:
  ScriptedService& service() { return models.model->service; }
  void start(api::Access access = {}) {
    api_ = std::make_unique<api::Api>(services, std::move(access));
    auto made = http::Server::listen({}, *api_);
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
    thread_ = std::thread([this] { server->run(); });
    services.ready = true;
  }
  void SetUp() override { start(); }
  void TearDown() override {
    stop();
    service().finish();  // who asks for a job need not wait for its end, which `services` are told
  }
  void stop() {
    if (!server) return;
    server->stop();
    thread_.join();
    server.reset();
  }

  HttpAnswer ask(const std::string& bytes) {
    HttpAnswer a = HttpClient(server->port()).ask(bytes);
    record(bytes, a);
    return a;
  }
  HttpAnswer ask(const std::string& path, const Json& body) { return ask(post(path, body.dump())); }
  static Json json(const HttpAnswer& a) {
    Json j = Json::parse(a.body, nullptr, false);
    EXPECT_FALSE(j.is_discarded()) << a.status << " " << a.body;
    return j;
  }
  // llama.cpp's form of a completion of "Once".
  Json complete(const Json& more) {
    Json body = {{"prompt", "Once"}};
    body.update(more);
    const HttpAnswer a = ask("/completion", body);
    EXPECT_EQ(a.status, 200) << body << a.body;
    return json(a);
  }
  // The data of the events of a stream; each must be framed as the contract says.
  static std::vector<std::string> events(const HttpAnswer& a, std::vector<std::string>* names = nullptr) {
    EXPECT_EQ(a.status, 200) << a.body;
    EXPECT_TRUE(a.headers.at("content-type").starts_with("text/event-stream"));
    EXPECT_TRUE(a.whole);
    std::vector<std::string> all;
    for (size_t at = 0, end; at < a.body.size(); at = end + 2) {
      end = a.body.find("\n\n", at);
      if (end == std::string::npos) {
        ADD_FAILURE() << "an event without an end: " << a.body.substr(at);
        break;
      }
      std::string event = a.body.substr(at, end - at), name;
      if (event.starts_with("event: ")) {
        name = event.substr(7, event.find('\n') - 7);
        event.erase(0, event.find('\n') + 1);
      }
      EXPECT_TRUE(event.starts_with("data: ")) << event;
      EXPECT_EQ(event.find('\n'), std::string::npos);
      all.push_back(event.substr(6));
      if (names) names->push_back(name);
    }
    return all;
  }
  // 400 in OpenAI's form, about this field.
  void expect_wrong(const std::string& path, Json body, const std::string& param) {
    const HttpAnswer a = ask(path, body);
    EXPECT_EQ(a.status, 400) << body << a.body;
    const Json e = json(a)["error"];
    EXPECT_EQ(e["type"], "invalid_request_error");
    EXPECT_EQ(e["param"], param.empty() ? Json() : Json(param)) << body;
  }

  OneModel models;
  api::Services services{models, "1.2.3", [] { return std::string("{\"backends\":[]}"); }};
  std::unique_ptr<http::Server> server;

 private:
  // Writes whole answers to the file that $GIMBAL_ANSWERS names: published_answers_test.py compares them with
  // the descriptions of their APIs.
  static void record(const std::string& sent, const HttpAnswer& a) {
    const char* file = std::getenv("GIMBAL_ANSWERS");
    if (!file || !a.whole) return;
    std::istringstream words(sent);
    std::string method, path;
    words >> method >> path;
    const auto type = a.headers.find("content-type");
    const Json line = {{"method", method},
                       {"path", path},
                       {"status", a.status},
                       {"type", type == a.headers.end() ? "" : type->second},
                       {"body", a.body}};
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::ofstream(file, std::ios::app) << line.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  }

  std::unique_ptr<api::Api> api_;
  std::thread thread_;
};

}  // namespace gimbal::test
