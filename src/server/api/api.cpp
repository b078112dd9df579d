#include "server/api/api.h"

#include <algorithm>
#include <cctype>
#include <random>

#include "base/clock.h"
#include "base/format.h"
#include "base/hash.h"
#include "server/api/call.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

struct Route {
  const char* method;
  const char* path;  // one that ends with "/*" leaves the rest open
  Handle handle;
  enum : uint8_t { Guarded, Open, NoBody } access = Guarded;  // NoBody: guarded, and the body may be empty
};

constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", chat_completions},
    {"POST", "/v1/completions", completions},
    {"POST", "/v1/embeddings", embeddings},
    {"POST", "/v1/rerank", rerank},
    {"GET", "/v1/models", list_models},
    {"GET", "/v1/models/*", show_model},
    {"POST", "/v1/responses", responses},
    {"POST", "/v1/messages", messages},
    {"POST", "/v1/messages/count_tokens", count_tokens},
    {"POST", "/api/generate", ollama_generate},
    {"POST", "/api/chat", ollama_chat},
    {"POST", "/api/embed", ollama_embed},
    {"GET", "/api/tags", ollama_tags},
    {"POST", "/api/show", ollama_show},
    {"GET", "/api/ps", ollama_ps},
    {"GET", "/api/version", ollama_version},
    {"POST", "/v1/jobs", create_job},
    {"GET", "/v1/jobs/*", stream_job},
    {"DELETE", "/v1/jobs/*", delete_job},
    {"GET", "/v1/loading/progress", loading_progress},
    {"GET", "/health/live", health_live, Route::Open},
    {"GET", "/health/ready", health_ready, Route::Open},
    {"GET", "/health", health_ready, Route::Open},
    {"GET", "/metrics", metrics},
    {"GET", "/v1/backends", show_backends},
    {"POST", "/v1/backends/reload", reload_backends, Route::NoBody},
    {"GET", "/v1/receipts/*", show_receipt},
    {"GET", "/v1/explain/*", show_explanation},
    {"GET", "/", show_page, Route::Open},
};

// The part that the route leaves open, or nothing where the path is another one.
std::optional<std::string> match(const Route& r, const std::string& path) {
  std::string_view p = r.path;
  if (!p.ends_with('*')) return p == path ? std::optional(std::string()) : std::nullopt;
  p.remove_suffix(1);
  if (!path.starts_with(p) || path.size() == p.size()) return {};
  return path.substr(p.size());
}

// Takes the same time wherever two differ.
bool same(std::string_view given, std::string_view key) {
  unsigned difference = unsigned(given.size() != key.size());
  for (size_t i = 0; i < key.size(); i++)
    difference |= unsigned(uint8_t(key[i]) ^ uint8_t(i < given.size() ? given[i] : 0));
  return difference == 0;
}

std::string_view given_key(const http::Request& r) {
  if (const std::string* h = r.header("authorization")) {
    std::string scheme = h->substr(0, 7);
    for (char& c : scheme) c = char(std::tolower(static_cast<unsigned char>(c)));
    if (scheme == "bearer ") return std::string_view(*h).substr(7);
  }
  const std::string* h = r.header("x-api-key");
  return h ? std::string_view(*h) : std::string_view();
}

bool is_json(const http::Request& r) {
  const std::string* type = r.header("content-type");
  if (!type) return false;
  std::string kind = type->substr(0, type->find(';'));
  while (kind.ends_with(' ')) kind.pop_back();
  for (char& c : kind) c = char(std::tolower(static_cast<unsigned char>(c)));
  return kind == "application/json";
}

}  // namespace

bool answers(const std::string& path) {
  for (const Route& route : kRoutes)
    if (route.method == std::string_view("GET") && match(route, path)) return true;
  return false;
}

std::string generated_key() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device system;
  std::string key = "gimbal-";
  for (int i = 0; i < 8; i++) {
    uint32_t bits = system();
    for (int k = 0; k < 8; k++, bits >>= 4) key += kDigits[bits & 15];
  }
  return key;
}

bool Api::allowed(const http::Request& r) const {
  if (access_.keys.empty()) return true;
  const std::string_view given = given_key(r);
  bool any = false;
  for (const std::string& key : access_.keys) any |= same(given, key);
  return any;
}

http::Response Api::refusal(int status, std::string_view path, const std::string& why) {
  const Dialect dialect = dialect_of(path);
  RequestRecord r{new_id("req_"), dialect, "", std::string(path), "", now()};
  http::Response out = error_response(dialect, {status, why}, r.id);
  add_request_id(out.headers, dialect, r.id);
  r.status = status, r.end = "refused";
  if (services_.log.tell) services_.log.tell(r);
  return out;
}

void Api::handle(http::Request request, std::shared_ptr<http::Exchange> exchange) {
  const Dialect dialect = dialect_of(request.path);
  const std::string id = new_id("req_");
  const auto record = std::make_shared<RequestRecord>(
      RequestRecord{id, dialect, request.method, request.path, request.peer, now()});
  if (services_.log.prompts) record->body = request.body;
  exchange = logged(services_.log, record, std::move(exchange));
  Call call{services_, std::move(request), std::move(exchange), dialect, id, record, {}, {}, {}};
  http::Request& r = call.request;
  std::vector<http::Header> headers;
  if (!access_.cors_origin.empty()) {
    headers.push_back({"Access-Control-Allow-Origin", access_.cors_origin});
    headers.push_back({"Vary", "Origin"});
  }
  call.add_headers(headers);
  const auto refuse = [&](const ApiError& e, std::vector<http::Header> more = {}) {
    http::Response out = error_response(call.dialect, e, call.id);
    out.headers.insert(out.headers.end(), headers.begin(), headers.end());
    out.headers.insert(out.headers.end(), more.begin(), more.end());
    record->end = e.code;
    call.exchange->answer(std::move(out));
  };

  const bool head = r.method == "HEAD";
  const Route* found = nullptr;
  std::string methods;
  for (const Route& route : kRoutes) {
    const auto argument = match(route, r.path);
    if (!argument) continue;
    methods += format("{}{}", methods.empty() ? "" : ", ", route.method);
    if (route.method == std::string_view("GET")) methods += ", HEAD";
    if (route.method == (head ? "GET" : r.method)) found = &route, call.argument = *argument;
  }
  if (r.method == "OPTIONS" && !methods.empty() &&
      !access_.cors_origin.empty()) {  // a browser asks before it asks
    http::Response out{204, "", ""};
    out.headers = headers;
    out.headers.push_back({"Access-Control-Allow-Methods", methods});
    out.headers.push_back(
        {"Access-Control-Allow-Headers", "authorization, content-type, x-api-key, anthropic-version"});
    return call.exchange->answer(std::move(out));
  }
  if ((!found || found->access != Route::Open) && !allowed(r)) {
    ApiError e{401, given_key(r).empty()
                        ? "an API key is needed: send it as Authorization: Bearer KEY or x-api-key: KEY"
                        : "the API key is not right"};
    e.code = "invalid_api_key";
    return refuse(e);
  }
  if (!found && methods.empty())
    return refuse({404, format("there is nothing at {}", quoted_briefly(r.path)), "", "not_found"});
  if (!found)
    return refuse(
        {405,
         format("{} is not for {}; there is {}", quoted_briefly(r.method), quoted_briefly(r.path), methods),
         "", "method_not_allowed"},
        {{"Allow", methods}});
  const bool posts = r.method == "POST";
  const bool no_body = found->access == Route::NoBody && r.body.empty();
  if (no_body) r.body = "{}";
  if (posts && !no_body && call.dialect != Dialect::Ollama && !is_json(r))
    return refuse({415, "the body must be JSON, and the header Content-Type: application/json", "",
                   "unsupported_media_type"});
  if (posts && !services_.ready) return refuse({503, "the model is being loaded", "", "", 1});
  if (posts && services_.draining) return refuse({503, "the server is about to end", "", "", 5});
  if (posts)
    if (auto no = parse_body(r.body, call.body)) return refuse(*no);
  r.body = {};
  const std::string_view key = given_key(r);
  call.client = key.empty() ? r.peer : format("key {:x}", Hash().add(key).value());
  if (!access_.cors_origin.empty()) call.more_headers.assign(headers.begin(), headers.begin() + 2);
  if (auto no = found->handle(call)) refuse(*no);
}

}  // namespace gimbal::api
