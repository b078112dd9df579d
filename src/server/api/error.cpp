#include "server/api/error.h"

#include "base/format.h"
#include "base/json.h"
#include "scheduler/request.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

const char* openai_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

const char* anthropic_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

Dialect dialect_of(std::string_view path) {
  if (path.starts_with("/api/")) return Dialect::Ollama;
  return path == "/v1/messages" || path.starts_with("/v1/messages/") ? Dialect::Anthropic : Dialect::OpenAi;
}

ApiError wrong_field(std::string param, std::string message) {
  return {400, std::move(message), std::move(param)};
}

ApiError unknown_model(const std::string& name) {
  return {404, format("there is no model {}; /v1/models lists those that there are", quoted_briefly(name)),
          "model", "model_not_found"};
}

ApiError context_exceeded(size_t tokens, int context) {
  return {400,
          format("the prompt has {} tokens, and the context of this model has room for {} tokens", tokens,
                 context),
          "messages", "context_length_exceeded"};
}

ApiError of(const Error& e) {
  if (e.reason == std::string_view(reason::kContextFull))
    return {400, e.message, "", "context_length_exceeded"};
  if (e.reason == std::string_view(reason::kQueueFull))
    return {429, "too many requests wait already; try again later", "", "queue_full", 1};
  if (e.code == Code::Usage || (e.code == Code::Unsupported && *e.field)) return {400, e.message, e.field};
  if (e.code == Code::OutOfMemory) return {503, "there is not enough memory for this request now", "", "", 5};
  return {500, "the model failed to compute the answer; the server's log says more"};
}

std::string error_text(Dialect d, const ApiError& e, const std::string& request_id) {
  const auto text_or_null = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  switch (d) {
    case Dialect::Ollama: return dump({{"error", e.message}});
    case Dialect::WebSocket: {  // the last frame of an answer
      Json j = {{"error", e.message}};
      if (!e.param.empty()) j["param"] = e.param;
      if (!e.code.empty()) j["code"] = e.code;
      if (e.retry_after) j["retry_after"] = e.retry_after;
      j["done"] = true;
      return dump(j);
    }
    case Dialect::Anthropic:
      return dump({{"type", "error"},
                   {"error", {{"type", anthropic_type(e.status)}, {"message", e.message}}},
                   {"request_id", text_or_null(request_id)}});
    case Dialect::OpenAi: break;
  }
  const bool bad_key = e.code == "invalid_api_key";
  return dump({{"error",
                {{"message", e.message},
                 {"type", bad_key ? "invalid_request_error" : openai_type(e.status)},
                 {"param", text_or_null(e.param)},
                 {"code", text_or_null(e.code)}}}});
}

void add_request_id(std::vector<http::Header>& to, Dialect d, const std::string& request_id) {
  if (d == Dialect::OpenAi) to.push_back({"x-request-id", request_id});
  if (d == Dialect::Anthropic) to.push_back({"request-id", request_id});
}

http::Response error_response(Dialect d, const ApiError& e, const std::string& request_id) {
  http::Response r{e.status, error_text(d, e, request_id)};
  if (e.retry_after) r.headers.push_back({"Retry-After", format("{}", e.retry_after)});
  if (e.status == 401) r.headers.push_back({"WWW-Authenticate", "Bearer"});
  return r;
}

}  // namespace gimbal::api
