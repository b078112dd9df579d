#include "server/api/api.h"

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "server/api/call.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", chat_completions},
    {"POST", "/v1/completions", completions},
    {"POST", "/v1/embeddings", embeddings},
    {"POST", "/v1/audio/transcriptions", transcriptions, Route::Guarded, nullptr, "file"},
    {"POST", "/v1/rerank", rerank},
    {"GET", "/v1/models", list_models},
    {"GET", "/v1/models/*", show_model},
    {"POST", "/v1/models/load", load_model, Route::Changes},
    {"POST", "/v1/models/unload", unload_model, Route::Changes},
    {"POST", "/v1/responses", responses},
    {"POST", "/v1/messages", messages},
    {"POST", "/v1/messages/count_tokens", count_tokens},
    {"POST", "/api/generate", ollama_generate},
    {"POST", "/api/chat", ollama_chat},
    {"POST", "/api/embed", ollama_embed},
    {"POST", "/api/embeddings", ollama_embeddings},
    {"GET", "/api/tags", ollama_tags},
    {"POST", "/api/show", ollama_show},
    {"GET", "/api/ps", ollama_ps},
    {"GET", "/api/version", ollama_version},
    {"POST", "/api/pull", ollama_pull, Route::Changes},
    {"DELETE", "/api/delete", ollama_delete, Route::Changes},
    {"POST", "/api/copy", ollama_copy, Route::Changes},
    {"POST", "/api/create", ollama_create, Route::Changes},
    {"POST", "/v1/jobs", create_job},
    {"GET", "/v1/jobs/*", stream_job},
    {"DELETE", "/v1/jobs/*", delete_job},
    {"GET", "/v1/loading/progress", loading_progress},
    {"GET", "/health/live", health_live, Route::Open},
    {"GET", "/health/ready", health_ready, Route::Open},
    {"GET", "/health", health_ready, Route::Open},
    {"GET", "/metrics", metrics},
    {"GET", "/v1/backends", show_backends},
    {"POST", "/v1/backends/reload", reload_backends, Route::Changes},
    {"GET", "/v1/receipts/*", show_receipt},
    {"GET", "/v1/explain/*", show_explanation},
    {"GET", "/openapi.json", show_openapi, Route::Open},
    {"GET", "/", show_page, Route::Open},
    // llama.cpp's server: its own endpoints, and the same paths without /v1.
    {"POST", "/completion", llama_completion},
    {"POST", "/completions", llama_completion},
    {"POST", "/infill", llama_infill},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
    {"POST", "/v1/chat/completions/input_tokens", chat_input_tokens},
    {"POST", "/chat/completions/input_tokens", chat_input_tokens},
    {"GET", "/props", show_props},
    {"GET", "/slots", show_slots},
    {"GET", "/lora-adapters", show_adapters},
    {"POST", "/lora-adapters", set_adapters, Route::Changes, "lora"},
    {"POST", "/slots/*", change_slot, Route::Changes},
    {"POST", "/embedding", llama_embeddings},
    {"POST", "/embeddings", llama_embeddings},
    {"POST", "/chat/completions", chat_completions},
    {"POST", "/responses", responses},
    {"POST", "/rerank", rerank},
    {"POST", "/reranking", rerank},
    {"POST", "/v1/reranking", rerank},
    {"GET", "/models", list_models},
    {"GET", "/v1/health", health_ready, Route::Open},
    // shimmy's server
    {"GET", "/ws/generate", open_socket},
};

// The part that the route leaves open, or nothing where the path is another one.
std::optional<std::string> match(const Route& r, const std::string& path) {
  std::string_view p = r.path;
  if (!p.ends_with('*')) return p == path ? std::optional(std::string()) : std::nullopt;
  p.remove_suffix(1);
  if (!path.starts_with(p) || path.size() == p.size()) return {};
  return path.substr(p.size());
}

bool is_json(const http::Request& r) {
  const std::string* type = r.header("content-type");
  if (!type) return false;
  std::string kind = http::lower(std::string_view(*type).substr(0, type->find(';')));
  while (kind.ends_with(' ')) kind.pop_back();
  return kind == "application/json";
}

}  // namespace

Refused takes_requests(const Call& call) {
  if (!call.services.ready) return ApiError{503, "the model is being loaded", "", "", 1};
  if (call.services.draining) return ApiError{503, "the server is about to end", "", "", 5};
  return {};
}

Refused read_body(Call& call, std::string text, const char* list) {
  if (auto no = takes_requests(call)) return no;
  call.body_bytes = text.size();
  return parse_body(text, call.body, list);
}

std::span<const Route> routes() { return kRoutes; }

bool answers(const std::string& path) {
  for (const Route& route : kRoutes)
    if (route.method == std::string_view("GET") && match(route, path)) return true;
  return false;
}

// Receipts on disk outlive the server, so their owner is a digest: the same for the same key, and no key.
std::string Api::owner_of(std::string_view key) const {
  if (access_.keys.empty()) return "anyone";
  Sha256 sha;
  sha.add(key);
  return sha.hex().substr(0, 16);
}

http::Response Api::refusal(int status, std::string_view path, const std::string& why) {
  const Dialect dialect = dialect_of(path);
  RequestRecord r{new_id("req_"), dialect, "", std::string(path)};
  r.begin = now();
  http::Response out = error_response(dialect, {status, why}, r.id);
  add_request_id(out.headers, dialect, r.id);
  r.status = status, r.end = "refused";
  services_.counts.add(r);
  if (services_.log.tell) services_.log.tell(r);
  return out;
}

void Api::handle(http::Request request, std::shared_ptr<http::Exchange> exchange) {
  const Dialect dialect = dialect_of(request.path);
  const std::string id = new_id("req_");
  const auto record =
      std::make_shared<RequestRecord>(RequestRecord{id, dialect, request.method, request.path, request.peer});
  record->begin = now();
  if (services_.log.prompts) record->body = request.body;
  exchange = logged(services_.log, services_.counts, record, std::move(exchange));
  Call call{services_, std::move(request), std::move(exchange), dialect, id, record, {}, {}, {}, {}};
  http::Request& r = call.request;
  std::vector<http::Header> headers = headers_for_site(access_, r);
  const size_t for_site = headers.size();
  call.add_headers(headers);
  const auto refuse = [&](const ApiError& e, std::vector<http::Header> more = {}) {
    http::Response out = error_response(call.dialect, e, call.id);
    out.headers.insert(out.headers.end(), headers.begin(), headers.end());
    out.headers.insert(out.headers.end(), more.begin(), more.end());
    record->end = e.code;
    if (record->why.empty()) record->why = e.message;  // a handler may know more than the client learns
    call.exchange->answer(std::move(out));
  };
  if (auto no = refuse_by_head(access_, r)) return refuse(*no);

  const bool head = r.method == "HEAD";
  const Route* found = nullptr;
  std::string methods;
  for (const Route& route : kRoutes) {
    const auto argument = match(route, r.path);
    if (!argument) continue;
    record->route = route.path;
    methods += format("{}{}", methods.empty() ? "" : ", ", route.method);
    if (route.method == std::string_view("GET")) methods += ", HEAD";
    if (route.method == (head ? "GET" : r.method)) found = &route, call.argument = *argument;
  }
  if (r.method == "OPTIONS" && !methods.empty() && !access_.sites.empty()) {
    http::Response out = preflight(access_, r, methods);
    add_request_id(out.headers, dialect, id);
    return call.exchange->answer(std::move(out));
  }
  if (!found || found->access != Route::Open)
    if (auto no = refuse_by_key(access_, r)) return refuse(*no);
  if (!found && methods.empty())
    return refuse({404, format("there is nothing at {}", quoted_briefly(r.path)), "", "not_found"});
  if (!found)
    return refuse(
        {405,
         format("{} is not for {}; there is {}", quoted_briefly(r.method), quoted_briefly(r.path), methods),
         "", "method_not_allowed"},
        {{"Allow", methods}});
  const bool changes = found->access == Route::Changes;
  const bool posts = r.method == "POST" || changes;  // its body is read
  if (posts && !found->file && (changes || call.dialect != Dialect::Ollama) && !is_json(r))
    return refuse({415, "the body must be JSON, and the header Content-Type: application/json", "",
                   "unsupported_media_type"});
  if (changes && r.body.empty()) r.body = "{}";
  if (auto no = wrong_certificate_header(r)) return refuse(*no);
  if (posts) {
    std::string body = std::exchange(r.body, {});
    if (auto no = found->file ? read_form(call, std::move(body), found->file)
                              : read_body(call, std::move(body), found->list))
      return refuse(*no);
  }
  const std::string_view key = given_key(r);
  call.client = key.empty() ? r.peer : format("key {:x}", Hash().add(key).value());
  call.owner = owner_of(key);
  call.more_headers.assign(headers.begin(), headers.begin() + ptrdiff_t(for_site));
  if (auto no = found->handle(call)) refuse(*no);
}

}  // namespace gimbal::api
