// libFuzzer over bodies of requests: whatever a body is, it is an object with names that can be asked for, or
// refused with an error that can be sent; and fields are read with the types that they have.
#include <string>

#include "base/text.h"
#include "require.h"
#include "server/api/fields.h"
#include "server/api/openapi.h"
#include "server/api/text.h"

// The list of all endpoints would link the whole server; here no other endpoint has a field.
namespace gimbal::api {
std::vector<std::string> endpoints_with(const std::string&) { return {}; }
}  // namespace gimbal::api

namespace {

using namespace gimbal;
using namespace gimbal::api;

void expect_sendable(const Refused& no) {
  if (!no) return;
  require(no->status >= 400 && no->status < 500 && !no->message.empty());
  for (Dialect d : {Dialect::OpenAi, Dialect::Anthropic, Dialect::Ollama}) {
    const std::string text = error_text(d, *no, "req_1");
    require(is_utf8(text) && text.find('\n') == text.npos);
    require(Json::parse(text, nullptr, false).is_object());
  }
}

void read_all(const Json& object, int depth) {
  for (const auto& [key, value] : object.items()) {
    const char* name = key.c_str();
    if (key.find('\0') != key.npos) continue;  // no field of ours
    for (int as = 0; as < 7; as++) {
      Fields f(object);
      bool found = false;
      if (as == 0) {
        const auto n = f.number(name, -5, 5);
        found = n.has_value();
        require(!n || (*n >= -5 && *n <= 5 && value.is_number()));
      } else if (as == 1) {
        const auto n = f.whole(name, -5, 5);
        found = n.has_value();
        require(!n || (*n >= -5 && *n <= 5));
      } else if (as == 2) {
        found = f.flag(name).has_value();
        require(!found || value.is_boolean());
      } else if (as == 3) {
        const auto t = f.text(name);
        found = t.has_value();
        require(!t || is_utf8(*t));
      } else if (as == 4) {
        found = f.word(name, {"auto", "none"}).has_value();
      } else if (as == 5) {
        found = !f.texts(name, 4).empty();
        require(!found || value.is_string() || (value.is_array() && value.size() <= 4));
      } else {
        const Json* inner = f.object(name);
        found = inner;
        if (inner && depth < 3) read_all(*inner, depth + 1);
      }
      require(!found || f.ok());  // a value, or a mistake
      expect_sendable(f.error());
      expect_sendable(f.finish());
      require(object.size() == 1 || f.finish());  // the others were not read
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Json body, list;
  if (!parse_body(text, list, "lora")) {  // a list becomes a field
    require(list.is_object());
    if (list.size() <= 16) read_all(list, 0);
  }
  if (auto no = parse_body(text, body)) return expect_sendable(no), 0;
  require(body.is_object());
  const std::string again = dump(body);
  require(is_utf8(again));
  Json same;
  require(!parse_body(again, same));
  if (body.size() <= 16) read_all(body, 0);
  return 0;
}
