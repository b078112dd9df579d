#include "server/api/openapi.h"

#include <algorithm>

#include "base/format.h"
#include "server/api/call.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr double kNoLimit = 9e15;  // of whole numbers: beyond it is any

Json number_schema(const char* type, const FieldRead& r) {
  Json j = {{"type", type}};
  const bool whole = r.kind == FieldRead::Whole;
  if (r.low > -kNoLimit) j["minimum"] = whole ? Json(int64_t(r.low)) : Json(r.low);
  if (r.high < kNoLimit) j["maximum"] = whole ? Json(int64_t(r.high)) : Json(r.high);
  return j;
}

Json fields_schema(const FieldsSeen& seen);

Json field_schema(const FieldsSeen& seen) {
  // A field that is read in several ways, such as a text or an object, may be anything of these.
  const auto kind = [&](FieldRead::Kind k) {
    return std::any_of(seen.reads.begin(), seen.reads.end(), [&](const FieldRead& r) { return r.kind == k; });
  };
  if (seen.reads.empty() || kind(FieldRead::Any)) return Json::object();
  const FieldRead& r = seen.reads[0];
  switch (r.kind) {
    case FieldRead::Number: return number_schema("number", r);
    case FieldRead::Whole: return number_schema("integer", r);
    case FieldRead::Flag: return {{"type", "boolean"}};
    case FieldRead::Text: return {{"type", "string"}};
    case FieldRead::Texts: return {{"type", {"string", "array"}}, {"items", {{"type", "string"}}}};
    case FieldRead::Word: return {{"type", "string"}, {"enum", r.words}};
    case FieldRead::Object: return fields_schema(seen);
    case FieldRead::List: {
      Json items = seen.element ? fields_schema(*seen.element) : Json::object();
      items.erase("type");  // some lists have texts beside objects
      return {{"type", "array"}, {"items", std::move(items)}};
    }
    case FieldRead::Only: return {{"const", parse_json(r.words[0])}};
    case FieldRead::Harmless: return {{"description", "Accepted; no value changes an answer."}};
    case FieldRead::Any: break;
  }
  return Json::object();
}

Json fields_schema(const FieldsSeen& seen) {
  Json j = {{"type", "object"}};
  if (seen.fields.empty() && !seen.closed) return j;
  Json required = Json::array();
  j["properties"] = Json::object();
  for (const auto& [name, field] : seen.fields) {
    j["properties"][name] = field_schema(field);
    if (field.needed && field.needed == seen.rounds) required.push_back(name);
  }
  if (!required.empty()) j["required"] = std::move(required);
  if (seen.closed) j["additionalProperties"] = false;
  return j;
}

// "/v1/models/{name}" of "/v1/models/*".
std::string with_parameter(std::string path) {
  const size_t at = path.find('*');
  return at == path.npos ? path : path.replace(at, 1, "{name}");
}

std::string operation_id(const Endpoint& e) {
  std::string id = http::lower(e.method);
  for (char c : e.path) id += std::isalnum(uint8_t(c)) ? c : c == '*' ? 'x' : '_';
  return id;
}

Json content(const char* type, Json schema) { return {{type, {{"schema", std::move(schema)}}}}; }

Json operation(const Endpoint& e) {
  const bool streams = e.body.fields.count("stream") > 0;
  Json answer = {{"description",
                  streams ? "The answer; a stream of events if the request asks for it." : "The answer."}};
  if (e.method == "POST" || e.path.starts_with("/v1/") || e.path.starts_with("/api/")) {
    answer["content"] = content("application/json", Json::object());
    if (streams) answer["content"]["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  }
  Json j = {{"operationId", operation_id(e)},
            {"responses",
             {{"200", std::move(answer)},
              {"default",
               {{"description", "An error, in the form of the path's API; it names the field at fault."},
                {"content", content("application/json", {{"type", "object"}})}}}}}};
  if (e.path.find('*') != e.path.npos)
    j["parameters"] = Json::array(
        {{{"name", "name"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}});
  if (e.method == "POST") {
    Json schema = fields_schema(e.body);
    if (!e.list.empty()) schema = {{"anyOf", {field_schema(e.body.fields.at(e.list)), std::move(schema)}}};
    if (!e.file.empty()) schema["properties"][e.file] = {{"type", "string"}, {"format", "binary"}};
    const char* type = e.file.empty() ? "application/json" : "multipart/form-data";
    j["requestBody"] = {{"required", true}, {"content", content(type, std::move(schema))}};
  }
  if (e.socket) {  // OpenAPI has no words for its messages
    j["responses"] = {{"101", {{"description", "A WebSocket; x-message describes each of its messages."}}},
                      {"426", {{"description", "The request is not for a WebSocket."}}},
                      {"default", j["responses"]["default"]}};
    j["x-message"] = fields_schema(e.body);
  }
  if (e.open) j["security"] = Json::array();
  return j;
}

}  // namespace

Json openapi(const std::string& version) {
  Json paths = Json::object();
  for (const Endpoint& e : endpoints()) paths[with_parameter(e.path)][http::lower(e.method)] = operation(e);
  return {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "gimbal serve"},
        {"version", version},
        {"description",
         "The APIs of OpenAI, Anthropic, Ollama and others over models of this machine. A field that is null "
         "counts as absent; a field that is not listed here is refused by its name."}}},
      {"servers", Json::array({{{"url", "/"}}})},
      {"security", Json::array({{{"bearer", Json::array()}}, {{"key", Json::array()}}, Json::object()})},
      {"paths", std::move(paths)},
      {"components",
       {{"securitySchemes",
         {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
          {"key", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}}}}}};
}

std::vector<std::string> endpoints_with(const std::string& field) {
  std::vector<std::string> found;
  for (const Endpoint& e : endpoints()) {
    const auto at = e.body.fields.find(field);
    // A field with one value is refused with any other.
    if (at == e.body.fields.end() ||
        (at->second.reads.size() == 1 && at->second.reads[0].kind == FieldRead::Only))
      continue;
    if (found.size() < 3) found.push_back(format("{} {}", e.method, e.path));
  }
  return found;
}

Refused show_openapi(Call& call) {
  call.answer_json(openapi(call.services.version));
  return {};
}

}  // namespace gimbal::api
