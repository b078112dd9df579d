// Ollama's paths that change the models of this machine: /api/pull, /api/delete, /api/copy, /api/create. Only
// a server with a library has them.
#include "base/folders.h"
#include "base/format.h"
#include "engine/find_model.h"
#include "fetch/pull.h"
#include "fetch/reach.h"
#include "server/api/ollama.h"
#include "server/model_library.h"
#include "template/template.h"

namespace gimbal::api {
namespace {

constexpr size_t kLongestText = 256 << 10;  // of a system message, and of a template

Refused no_library(Call& call) {
  if (call.services.models.library()) return {};
  return ApiError{403,
                  "this server has only the models that it was started with; its setting 'all-models' allows "
                  "others",
                  "", "models_fixed"};
}

Refused refused_change(const Error& e) {
  const std::string message = e.message + (e.remedy.empty() ? "" : "; ") + std::string(e.remedy);
  if (e.code == Code::NotFound) return ApiError{404, message, "model", "model_not_found"};
  if (e.reason == std::string_view(reason::kNotOurs))
    return ApiError{403, message, "model", "model_not_ours"};
  if (e.code == Code::Usage) return wrong_field("model", message);
  return ApiError{500, e.message};
}

// "model", or "name" of older clients.
std::string read_name(Fields& f) {
  auto name = f.text("model");
  if (auto older = f.text("name"); older && !name) name = older;
  if (!name) f.need("model");
  return name.value_or("");
}

class PullStream final : public http::Source {
 public:
  PullStream(std::shared_ptr<PullJob> job, std::shared_ptr<http::Exchange> exchange, bool stream,
             std::vector<http::Header> headers)
      : job_(std::move(job)), exchange_(std::move(exchange)), stream_(stream), headers_(std::move(headers)) {}

  void pull(http::Outgoing& out) override {
    if (done_) {
      out.end = true;
      return;
    }
    std::string lines;
    const bool over = job_->read(seen_, lines);
    done_ = over;
    if (over) job_->leave(exchange_);
    if (!stream_) {
      if (!over) return;
      const Status result = job_->result();
      http::Response r{200, dump({{"status", "success"}})};
      if (!result) r = error_response(Dialect::Ollama, {500, result.error().message}, "");
      out.whole = std::move(r);
      out.whole->headers.insert(out.whole->headers.end(), headers_.begin(), headers_.end());
      return;
    }
    if (!begun_) {
      begun_ = true;
      out.head = http::Response{200, "", "application/x-ndjson"};
      out.head->headers = headers_;
    }
    out.bytes += lines;
    out.end = over;
  }
  void gone() override { job_->leave(exchange_); }

 private:
  const std::shared_ptr<PullJob> job_;
  const std::shared_ptr<http::Exchange> exchange_;
  const bool stream_;
  const std::vector<http::Header> headers_;
  PullJob::Seen seen_;
  bool begun_ = false, done_ = false;
};

// Clients need not know where this machine has its files.
Error without_folders(Error e) {
  for (const std::string& folder : {hub_cache_folder(), cache_folder()})
    for (size_t at; !folder.empty() && (at = e.message.find(folder)) != e.message.npos;)
      e.message.replace(at, folder.size(), "(cache)");
  return e;
}

Status fetch(PullJob& job, ModelLibrary& library) {
  job.tell({{"status", "pulling manifest"}});
  PullOptions options;
  options.public_only = true;
  auto pull = Pull::resolve(job.name, options, job);
  if (!pull) return without_folders(pull.error());
  std::vector<std::pair<std::string, std::string>> digests;
  for (const PullFile& f : (*pull)->files())
    if (!f.sha256.empty()) digests.emplace_back(f.name, "sha256:" + f.sha256);
  job.files(std::move(digests));
  auto path = (*pull)->fetch();
  if (!path) return without_folders(path.error());
  job.tell({{"status", "writing manifest"}});
  LibraryModel m;
  m.id = job.name, m.path = *path, m.pulled = true;
  if (!ModelLibrary::wrong_name(m.id))  // else it has the name of its file
    if (auto ok = library.describe(m); !ok) return ok;
  library.refresh();
  return Done{};
}

// The names in the order of Ollama's own lines.
void answer_success(Call& call, bool stream, std::initializer_list<const char*> steps) {
  if (!stream) return call.answer_json({{"status", "success"}});
  std::string lines;
  for (const char* step : steps) lines += dump({{"status", step}}) + "\n";
  lines += dump({{"status", "success"}}) + "\n";
  call.answer(http::Response{200, std::move(lines), "application/x-ndjson"});
}

void read_preset(Call& call, Fields& f, ModelPreset& to) {
  if (auto system = f.text("system")) to.system = *system;
  if (auto source = f.text("template"); source && !source->empty()) {
    to.chat_template = *source;
    if (source->find("{{ .") != source->npos || source->find("{{.") != source->npos ||
        source->find("{{- ") != source->npos)
      f.wrong("template", "'template' looks like one of Go's; here templates are in Jinja, as in GGUF files");
    else if (auto parsed = Template::parse(*source); !parsed)
      f.wrong("template", format("'template': {}", parsed.error().message));
  }
  if (to.system.size() > kLongestText || to.chat_template.size() > kLongestText)
    f.wrong("system", format("'system' and 'template' have at most {} bytes", kLongestText));
  if (const Json* parameters = f.object("parameters")) {
    Settings unused;
    read_ollama_parameters(call, f, "parameters", *parameters, unused);
    to.options.update(*parameters);
  }
}

}  // namespace

Refused ollama_pull(Call& call) {
  Fields f(call.body);
  const std::string name = read_name(f);
  const bool stream = f.flag("stream").value_or(true);
  f.refuse("insecure", "connections are checked", false);
  f.refuse("username", "the server's own token is used", "");
  f.refuse("password", "the server's own token is used", "");
  if (auto no = f.finish()) return no;
  if (auto no = no_library(call)) return no;
  ModelLibrary& library = *call.services.models.library();
  if (!is_address(name)) {
    // A model that is here already needs no address.
    if (call.services.models.describe(name))
      return answer_success(call, stream, {"pulling manifest"}), std::nullopt;
    return wrong_field("model",
                       format("{} is no address: write hf.co/OWNER/REPO[:QUANT], or the URL of a file",
                              quoted_briefly(name)));
  }
  auto address = parse_address(name);
  if (!address) return refused_change(address.error());
  // A client must not have this machine ask what only this machine can reach; Pull checks names and
  // redirections.
  const auto url = Url::parse(address->url);
  if (address->repository.empty() && url && reach_of(url->host) != Reach::Public)
    return ApiError{403,
                    format("{} lies inside of a network: fetch it on the server, by `gimbal pull`",
                           quoted_briefly(url->origin())),
                    "model", "address_not_public"};
  const auto job =
      call.services.pulls.start(name, call.exchange, [&library](PullJob& j) { return fetch(j, library); });
  if (!job) return ApiError{503, "too many models are being fetched; try again later", "", "pulls_busy", 10};
  call.record->model = name;
  std::vector<http::Header> headers;
  call.add_headers(headers);
  call.exchange->stream(std::make_shared<PullStream>(job, call.exchange, stream, std::move(headers)));
  return {};
}

Refused ollama_delete(Call& call) {
  Fields f(call.body);
  const std::string name = read_name(f);
  if (auto no = f.finish()) return no;
  if (auto no = no_library(call)) return no;
  if (auto ok = call.services.models.remove(name); !ok) return refused_change(ok.error());
  call.answer(http::Response{200, ""});
  return {};
}

Refused ollama_copy(Call& call) {
  Fields f(call.body);
  f.need("source"), f.need("destination");
  const auto source = f.text("source"), destination = f.text("destination");
  if (auto no = f.finish()) return no;
  if (auto no = no_library(call)) return no;
  auto m = call.services.models.describe(*source);
  if (!m) return refused_change(m.error());
  m->id = *destination;
  if (auto ok = call.services.models.library()->describe(*m); !ok) return refused_change(ok.error());
  call.answer(http::Response{200, ""});
  return {};
}

Refused ollama_create(Call& call) {
  Fields f(call.body);
  const std::string name = read_name(f);
  const bool stream = f.flag("stream").value_or(true);
  f.need("from");
  const std::string from = f.text("from").value_or("");
  f.refuse("modelfile", "give 'from', 'system', 'template' and 'parameters'", "");
  f.refuse("path", "give 'from', 'system', 'template' and 'parameters'", "");
  f.refuse("files", "name a model of this machine in 'from'", Json::object());
  f.refuse("adapters", "the server's setting 'lora' adds adapters", Json::object());
  f.refuse("messages", "'system' is what a conversation can begin with", Json::array());
  f.refuse("quantize", "weights stay as they are", "");
  f.harmless({"license"});
  auto m = f.ok() ? call.services.models.describe(from) : Result<LibraryModel>(Error{});
  auto preset = m && m->preset ? std::make_shared<ModelPreset>(*m->preset) : std::make_shared<ModelPreset>();
  read_preset(call, f, *preset);
  if (auto no = f.finish()) return no;
  if (auto no = no_library(call)) return no;
  if (!m) return refused_change(m.error());
  m->id = name, m->preset = std::move(preset);
  if (auto ok = call.services.models.library()->describe(*m); !ok) return refused_change(ok.error());
  answer_success(call, stream, {"reading model metadata", "creating system layer", "writing manifest"});
  return {};
}

}  // namespace gimbal::api
