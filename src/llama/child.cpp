#include "llama/llama_process.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/format.h"
#include "base/json_fields.h"
#include "base/sockets.h"
#include "llama/library_model.h"
#include "llama/protocol.h"
#include "workers/sandbox.h"

namespace gimbal::llama {
namespace {

class Child {
 public:
  explicit Child(int socket) : socket_(socket) {}

  int run() {
    while (auto frame = receive()) {
      const Json request = frame->kind == FrameKind::Json ? parse_json(frame->bytes) : Json();
      auto answer = request.is_object()
                        ? answer_to(request)
                        : Error{Code::Malformed, "the child got a request that is no object", ""};
      if (!send(encoded(answer ? *answer : error_json(answer.error())))) break;
    }
    return 0;
  }

 private:
  static Json error_json(const Error& e) {
    return {{"error",
             {{"code", int(e.code)}, {"message", e.message}, {"remedy", e.remedy}, {"reason", e.reason}}}};
  }

  std::optional<Frame> receive() {
    char piece[1 << 14];
    for (;;) {
      auto frame = reader_.next();
      if (!frame) return std::nullopt;
      if (*frame) return std::move(**frame);
      const ssize_t n = read(socket_, piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      reader_.feed({piece, size_t(n)});
    }
  }

  bool send(std::string_view bytes) { return send_all(socket_, bytes.data(), bytes.size()); }

  Result<Json> answer_to(const Json& request) {
    JsonReader in(request, "the request");
    std::string what;
    in("do", what);
    Result<Json> out = Error{Code::Malformed, format("there is no request '{}'", what), ""};
    if (what == "open") out = open(in);
    else if (what == "load") out = load(in);
    else if (what == "tokenize") out = tokenize(in);
    else if (what == "logits") out = logits(in);
    else if (what == "greedy") out = greedy(in);
    else if (what == "begin") out = begin(in);
    else if (what == "advance") out = advance(in);
    if (!in.problem().empty()) return Error{Code::Malformed, in.problem(), ""};
    return out;
  }

  Result<Json> open(JsonReader& in) {
    std::string path;
    in("library", path);
    if (!in.problem().empty()) return Json();
    auto library = LlamaLibrary::open(path);
    if (!library) return library.error();
    library_ = std::move(*library);
    const Generation& g = library_->generation();
    return Json{{"release", g.release},
                {"model_struct", g.model.size},
                {"context_struct", g.context.size},
                {"layers", library_->shows_layers()},
                {"system", library_->description()}};
  }

  Result<Json> load(JsonReader& in) {
    std::string path;
    in("model", path);
    if (!in.problem().empty()) return Json();
    if (!library_) return Error{Code::Usage, "no library is open", ""};
    auto model = LibraryModel::load(*library_, path);
    if (!model) return model.error();
    model_ = std::move(*model);
    Json out{{"vocabulary", model_->vocabulary()},
             {"layers", model_->layers()},
             {"width", model_->width()},
             {"half_values", model_->half_values()},
             {"description", model_->description()},
             {"sandbox", Json::array()},
             {"not_in_sandbox", Json::array()}};
    const Sandbox s = enter_sandbox();
    for (const std::string& text : s.in_force) out["sandbox"].push_back(text);
    for (const std::string& text : s.missing) out["not_in_sandbox"].push_back(text);
    return out;
  }

  Status ready(const JsonReader& in) const {
    if (!in.problem().empty()) return Error{Code::Malformed, in.problem(), ""};
    if (!model_) return Error{Code::Usage, "no model is loaded", ""};
    return Done{};
  }

  Result<Json> tokenize(JsonReader& in) {
    bool add_special = false, parse_special = false;
    in("add_special", add_special), in("parse_special", parse_special);
    const auto text = receive();
    if (auto ok = ready(in); !ok) return ok.error();
    if (!text || text->kind != FrameKind::Text)
      return Error{Code::Malformed, "there is no text to tokenize", ""};
    auto ids = model_->tokenize(text->bytes, add_special, parse_special);
    if (!ids) return ids.error();
    return Json{{"tokens", *ids}};
  }

  Result<Json> logits(JsonReader& in) {
    std::vector<int> tokens;
    RunSettings settings;
    bool layers = false;
    in("tokens", tokens), in("threads", settings.threads), in("context", settings.context),
        in("layers", layers);
    if (auto ok = ready(in); !ok) return ok.error();
    LibraryModel::TensorSink tensors;
    if (layers)
      tensors = [&](const std::string& name, int64_t rows, std::span<const float> values) {
        return send(encoded_tensor(name, rows, values));
      };
    auto seconds = model_->logits(
        tokens, settings,
        [&](int position, std::span<const float> row) { return send(encoded_row(position, row)); }, tensors);
    if (!seconds) return seconds.error();
    return Json{{"seconds", *seconds}};
  }

  Result<Json> greedy(JsonReader& in) {
    std::vector<int> tokens;
    RunSettings settings;
    int count = 0;
    in("tokens", tokens), in("count", count), in("threads", settings.threads),
        in("context", settings.context);
    if (auto ok = ready(in); !ok) return ok.error();
    if (count < 1 || count > 1 << 20) return Error{Code::Usage, format("a count of {} tokens", count), ""};
    auto times = model_->greedy(tokens, count, settings, [&](int32_t token) {
      return send(encoded(Json{{"token", token}}));
    });
    if (!times) return times.error();
    return Json{{"prompt_seconds", times->prompt}, {"token_seconds", times->tokens}};
  }

  Result<Json> begin(JsonReader& in) {
    RunSettings settings;
    in("threads", settings.threads), in("context", settings.context);
    if (auto ok = ready(in); !ok) return ok.error();
    if (settings.context < 1) return Error{Code::Usage, "a context of no positions", ""};
    if (auto ok = model_->begin(settings); !ok) return ok.error();
    return Json::object();
  }

  Result<Json> advance(JsonReader& in) {
    std::vector<int> tokens;
    in("tokens", tokens);
    if (auto ok = ready(in); !ok) return ok.error();
    auto row = model_->advance(tokens);
    if (!row) return row.error();
    if (!send(encoded_row(int(tokens.size()) - 1, *row))) return Error{Code::Failed, "cancelled", ""};
    return Json::object();
  }

  const int socket_;
  FrameReader reader_;
  std::unique_ptr<LlamaLibrary> library_;
  std::optional<LibraryModel> model_;
};

}  // namespace

int serve_library(int socket) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  return Child(socket).run();
}

}  // namespace gimbal::llama
