// One request to an API on its way to an answer.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/format.h"
#include "base/json.h"
#include "server/api/answer.h"
#include "server/api/error.h"
#include "server/api/fields.h"
#include "server/api/request_log.h"
#include "server/api/services.h"
#include "server/api/text.h"
#include "server/http/message.h"

namespace gimbal::api {

struct Call {
  Services& services;
  http::Request request;
  std::shared_ptr<http::Exchange> exchange;
  Dialect dialect;
  std::string id;  // of the request
  std::shared_ptr<RequestRecord> record;
  std::string argument;   // the variable part of the route's path
  std::string client;     // for equal shares: the key, or the address
  std::string owner;      // of receipts: a digest of the key, or a word if the server needs none
  Json body;              // of a POST; an object, also of a form (form.h)
  std::string file = {};  // of a form: the bytes of its file
  size_t body_bytes = 0;  // its size as sent
  std::vector<http::Header> more_headers = {};
  double load_seconds = 0;  // until the model was there

  int adapter = -1;  // that the name of the model means (adapter_named()); -1: none

  // The scales of the model's adapters for requests that give none; empty: those that it was loaded with.
  std::vector<float> adapters_for(const ServedModel& model) const {
    return adapter < 0 ? services.adapters.of(model) : only_adapter(model, adapter);
  }
  // Sets the fields that come from the call, not from its body.
  void fill(GenerationRequest& r, const ServedModel& model) const {
    r.client = client, r.owner = owner;
    if (r.adapters.empty()) r.adapters = adapters_for(model);
  }
  // Something that was taken, but not done as it was sent: in the answer's header and in the log.
  void note(const std::string& what) {
    more_headers.push_back({"x-gimbal-note", what});
    record->notes.push_back(what);
  }
  void note_context(std::optional<int64_t> wanted, const ServedModel& model) {
    if (wanted && *wanted > model.context())
      note(format("the context is {} tokens, not {}", model.context(), *wanted));
  }
  void answer(http::Response r) {
    add_headers(r.headers);
    exchange->answer(std::move(r));
  }
  void answer_json(const Json& j) { answer(http::Response{200, dump(j)}); }
  void add_headers(std::vector<http::Header>& to) const {
    to.insert(to.end(), more_headers.begin(), more_headers.end());
    add_request_id(to, dialect, id);
  }
  // Sets the fields that all plans share; its model and id are set.
  void fill(Plan& p) {
    fill_certificate(p);
    add_headers(p.headers);
    p.dialect = dialect;
    p.request_id = id;
    p.record = record;
    for (GenerationRequest& r : p.choices) fill(r, *p.model);
  }

 private:
  void fill_certificate(Plan&);  // certificates.cpp
};

// Reads the body of a request or message. Refused: no model is there yet, or the server is about to end.
// `list`: as of parse_body().
Refused read_body(Call&, std::string text, const char* list = nullptr);

// Whether requests are taken now. Refused: as of read_body().
Refused takes_requests(const Call&);

// Answers the call, or returns the error to answer with.
using Handle = Refused (*)(Call&);

struct Route {
  const char* method;
  const char* path;  // one that ends with "/*" leaves the rest open
  Handle handle;
  // Changes: guarded; it changes the server, so no form of a web page can send it. Its body may be empty.
  enum : uint8_t { Guarded, Open, Changes } access = Guarded;
  const char* list = nullptr;  // a body that is a list stands for this field; nullptr: it must be an object
  const char* file = nullptr;  // its body is a form with a file of this name; nullptr: it is JSON
};
std::span<const Route> routes();  // api.cpp

// Finds a requested model. A server of one model takes any name for it, except on Ollama's paths, where a
// name says which model to load; the answer has the model's own name and a note. There the name of an adapter
// means the model with this adapter alone (Call::adapter). Refused: no model of this
// name, or it cannot generate text (`generates`). `context`: tokens that it should have, if it can
// (Models::get_for()); 0: any.
Refused find_model(Call&, const std::string& name, bool generates, ServedModelPtr& to, int64_t context = 0);
// The same for the field "model", which a request to a server of one model may leave out.
Refused find_model(Call&, Fields&, bool generates, ServedModelPtr& to);

// openai_*.cpp
Refused chat_completions(Call&);
Refused transcriptions(Call&);
Refused completions(Call&);
Refused embeddings(Call&);
Json openai_model_json(Call&, const KnownModel&);
Refused list_models(Call&);
Refused show_model(Call&);
Refused responses(Call&);
// model_state.cpp
Refused load_model(Call&);
Refused unload_model(Call&);
Refused llama_embeddings(Call&);
// llama_*.cpp
Refused llama_completion(Call&);
Refused llama_infill(Call&);
Refused tokenize(Call&);
Refused detokenize(Call&);
Refused apply_template(Call&);
Refused chat_input_tokens(Call&);
Refused show_props(Call&);
// llama_slots.cpp
Refused show_slots(Call&);
Refused change_slot(Call&);
// adapters.cpp
Refused show_adapters(Call&);
Refused set_adapters(Call&);
// rerank.cpp
Refused rerank(Call&);
Refused no_embeddings(const ServedModel&);  // for a reranking model
// anthropic.cpp
Refused messages(Call&);
Refused count_tokens(Call&);
// ollama_texts.cpp, ollama_models.cpp
Refused ollama_generate(Call&);
Refused ollama_chat(Call&);
Refused ollama_embed(Call&);
Refused ollama_embeddings(Call&);
Refused ollama_tags(Call&);
Refused ollama_show(Call&);
Refused ollama_ps(Call&);
Refused ollama_version(Call&);
// ollama_library.cpp
Refused ollama_pull(Call&);
Refused ollama_delete(Call&);
Refused ollama_copy(Call&);
Refused ollama_create(Call&);
// jobs.cpp
Refused create_job(Call&);
Refused stream_job(Call&);
Refused delete_job(Call&);
Refused loading_progress(Call&);
// operation.cpp
Refused health_live(Call&);
Refused health_ready(Call&);
Refused metrics(Call&);
Refused show_backends(Call&);
Refused reload_backends(Call&);
Refused show_receipt(Call&);
Refused show_explanation(Call&);
Refused show_page(Call&);
// socket.cpp
Refused open_socket(Call&);
Refused socket_message(Call&);
// openapi.cpp
Refused show_openapi(Call&);

// A request whose body is a form with a file: its texts become the fields of Call::body, as those of a JSON
// object, and the file's bytes Call::file. The field of the file has its name.
inline constexpr size_t kMostFormText = size_t(64) << 10;  // bytes of a field that is no file

// `file`: the name of the file's field. A field whose name ends with "[]" becomes a list. Refused: 415
// without a form's type and boundary; 400 for a broken form, a field twice, or a text that is no UTF-8; as of
// read_body().
Refused read_form(Call&, std::string body, const char* file);

// Makes a number or a truth value of a text that is one. Forms have nothing but texts.
void read_as_json(Json& body, std::initializer_list<const char*> fields);

}  // namespace gimbal::api
