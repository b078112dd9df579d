// The forms in which models write the calls themselves.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "chat/tool_calls.h"

namespace gimbal {
namespace {

using Calls = std::optional<std::vector<ToolCall>>;

Json parsed(std::string_view s) { return parse_json(s); }

// A value between tags: parsed as JSON if valid, else text.
Json value_of(std::string_view s) {
  const Json j = parsed(s);
  if (!j.is_discarded()) return j;
  if (s == "True") return true;
  if (s == "False") return false;
  if (s == "None") return nullptr;
  return std::string(s);
}

// ---- JSON

std::optional<ToolCall> call_of(const Json& given) {
  if (!given.is_object()) return std::nullopt;
  const auto inner = given.find("function");
  const Json& j = inner != given.end() && inner->is_object() ? *inner : given;
  ToolCall call;
  for (const char* key : {"name", "tool_name", "function"})
    if (const auto at = j.find(key); at != j.end() && at->is_string() && call.name.empty())
      call.name = at->get<std::string>();
  if (!is_tool_name(call.name)) return std::nullopt;
  call.arguments = "{}";
  for (const char* key : {"arguments", "parameters", "args"}) {
    const auto at = j.find(key);
    if (at == j.end() || at->is_null()) continue;
    // Some write the object as a string of JSON.
    const Json inner = at->is_string() ? parsed(at->get_ref<const std::string&>()) : *at;
    if (!inner.is_object()) return std::nullopt;
    call.arguments = dump(inner);
    break;
  }
  return call;
}

// Objects and lists of them, one behind the other; between them space, commas or semicolons.
Calls json_calls(std::string_view s) {
  std::vector<ToolCall> out;
  while (!s.empty()) {
    // The end of the value: the bracket that closes the first one.
    if (s[0] != '{' && s[0] != '[') return std::nullopt;
    int depth = 0;
    size_t end = 0;
    for (bool in_text = false; end < s.size(); end++) {
      const char c = s[end];
      if (in_text) {
        if (c == '\\') end++;
        if (c == '"') in_text = false;
        continue;
      }
      if (c == '"') in_text = true;
      if (c == '{' || c == '[') depth++;
      if ((c == '}' || c == ']') && --depth == 0) break;
    }
    if (end >= s.size()) return std::nullopt;
    const Json j = parsed(s.substr(0, end + 1));
    if (!j.is_object() && !j.is_array()) return std::nullopt;
    for (const Json& one : j.is_array() ? j : Json::array({j})) {
      auto call = call_of(one);
      if (!call) return std::nullopt;
      out.push_back(std::move(*call));
    }
    s.remove_prefix(end + 1);
    s.remove_prefix(std::min(s.find_first_not_of(" \t\r\n,;"), s.size()));
  }
  return out;
}

// ---- <function=NAME> <parameter=KEY> value </parameter> ... </function>

// The text between `open` NAME > and `close`, from `at` on; moves `at` past it.
struct Element {
  std::string_view name, body;
};
std::optional<Element> element(std::string_view s, size_t& at, std::string_view open,
                               std::string_view close) {
  const size_t begin = s.find(open, at);
  if (begin == s.npos) return std::nullopt;
  const size_t mark = s.find('>', begin);
  const size_t end = mark == s.npos ? mark : s.find(close, mark);
  if (end == s.npos) return std::nullopt;
  at = end + close.size();
  return Element{trimmed(s.substr(begin + open.size(), mark - begin - open.size())),
                 s.substr(mark + 1, end - mark - 1)};
}

Calls xml_calls(std::string_view s) {
  std::vector<ToolCall> out;
  for (size_t at = 0;;) {
    const auto function = element(s, at, "<function=", "</function>");
    if (!function) break;
    if (!is_tool_name(function->name)) return std::nullopt;
    Json arguments = Json::object();
    for (size_t inner = 0;;) {
      const auto parameter = element(function->body, inner, "<parameter=", "</parameter>");
      if (!parameter) break;
      arguments[std::string(parameter->name)] = value_of(trimmed(parameter->body));
    }
    out.push_back({std::string(function->name), dump(arguments)});
  }
  return out.empty() ? Calls() : Calls(std::move(out));
}

// ---- NAME <arg_key>KEY</arg_key> <arg_value>VALUE</arg_value> ...

Calls key_value_calls(std::string_view s) {
  const std::string_view name = trimmed(s.substr(0, s.find('<')));
  if (!is_tool_name(name)) return std::nullopt;
  Json arguments = Json::object();
  for (size_t at = 0;;) {
    const auto key = element(s, at, "<arg_key", "</arg_key>");
    const auto value = key ? element(s, at, "<arg_value", "</arg_value>") : key;
    if (!value) break;
    arguments[std::string(trimmed(key->body))] = value_of(trimmed(value->body));
  }
  return {{{std::string(name), dump(arguments)}}};
}

// ---- NAME[ARGS]{...}, and DeepSeek's: type, separator, NAME, a block of JSON

Calls named_json_calls(std::string_view s) {
  const size_t brace = s.find('{');
  if (brace == s.npos) return std::nullopt;
  std::string_view head = s.substr(0, brace), body = s.substr(brace);
  if (const size_t close = body.rfind('}'); close != body.npos) body = body.substr(0, close + 1);
  const Json arguments = parsed(body);
  if (!arguments.is_object()) return std::nullopt;
  for (std::string_view mark : {"[ARGS]", "[CALL_ID]", "```json"})
    if (const size_t at = head.find(mark); at != head.npos) head = head.substr(0, at);
  if (const size_t at = head.rfind('>'); at != head.npos) head.remove_prefix(at + 1);
  head = trimmed(head);
  if (!is_tool_name(head)) return std::nullopt;
  return {{{std::string(head), dump(arguments)}}};
}

// ---- [NAME(key="value", other=3), ...], as Python writes calls

class PythonCalls {
 public:
  explicit PythonCalls(std::string_view s) : s_(s) {}
  Calls read() {
    std::vector<ToolCall> out;
    if (!take('[')) return std::nullopt;
    do {
      const std::string name = word();
      if (!is_tool_name(name) || !take('(')) return std::nullopt;
      Json arguments = Json::object();
      while (!take(')')) {
        const std::string key = word();
        if (key.empty() || !take('=')) return std::nullopt;
        auto v = value();
        if (!v) return std::nullopt;
        arguments[key] = std::move(*v);
        if (!take(',') && !(at_ < s_.size() && s_[at_] == ')')) return std::nullopt;
      }
      out.push_back({name, dump(arguments)});
    } while (take(','));
    if (!take(']') || at_ < s_.size()) return std::nullopt;
    return out;
  }

 private:
  void space() { at_ = std::min(s_.find_first_not_of(" \t\r\n", at_), s_.size()); }
  bool take(char c) {
    space();
    if (at_ >= s_.size() || s_[at_] != c) return false;
    at_++;
    space();
    return true;
  }
  std::string word() {
    space();
    const size_t begin = at_;
    while (at_ < s_.size() && is_tool_name(s_.substr(at_, 1))) at_++;
    return std::string(s_.substr(begin, at_ - begin));
  }
  // Up to the comma or bracket behind it, with brackets and strings inside.
  std::optional<Json> value() {
    space();
    const size_t begin = at_;
    int depth = 0;
    for (char quote = 0; at_ < s_.size(); at_++) {
      const char c = s_[at_];
      if (quote) {
        if (c == '\\') at_++;
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (c == '[' || c == '{' || c == '(') depth++;
      if ((c == ',' || c == ')') && depth == 0) break;
      if (c == ']' || c == '}' || c == ')') depth--;
    }
    if (at_ >= s_.size() || at_ == begin) return std::nullopt;
    return literal(trimmed(s_.substr(begin, at_ - begin)));
  }

  // Python's strings and its names of constants become JSON's, also within lists and dictionaries. A result
  // that is not JSON becomes text.
  static Json literal(std::string_view s) {
    std::string as_json;
    for (size_t i = 0; i < s.size();) {
      size_t end = i + 1;
      if (s[i] == '"' || s[i] == '\'') {
        while (end < s.size() && s[end] != s[i]) end += s[end] == '\\' ? 2 : 1;
        if (end >= s.size()) return std::string(s);
        as_json += dump(string_of(s.substr(i + 1, end - i - 1)));
        end++;
      } else {
        while (end < s.size() && std::isalpha(uint8_t(s[i])) && std::isalpha(uint8_t(s[end]))) end++;
        const std::string_view word = s.substr(i, end - i);
        as_json += word == "True" ? "true" : word == "False" ? "false" : word == "None" ? "null" : word;
      }
      i = end;
    }
    const Json j = parsed(as_json);
    return j.is_discarded() ? Json(std::string(s)) : j;
  }

  // A string between its quotes, by Python's escapes ("The Python Language Reference", 2.4.1): they are
  // JSON's but for \xHH and \', and an unknown one stays as it is.
  static Json string_of(std::string_view s) {
    const auto hexadecimal = [&](size_t at, size_t digits) {
      return at + digits <= s.size() && std::all_of(s.begin() + at, s.begin() + at + digits,
                                                    [](unsigned char c) { return std::isxdigit(c); });
    };
    std::string as_json = "\"";
    for (size_t i = 0; i < s.size(); i++) {
      const char c = s[i], next = i + 1 < s.size() ? s[i + 1] : '\0';
      if (c == '"') as_json += "\\\"";
      else if (uint8_t(c) < 0x20) as_json += format("\\u{:04x}", uint8_t(c));
      else if (c != '\\') as_json += c;
      else if (next == 'x' && hexadecimal(i + 2, 2)) as_json += "\\u00", i++;
      else if (next == '\'') as_json += next, i++;
      else if (next && (std::string_view("nrtbf\\\"/").find(next) != std::string_view::npos ||
                        (next == 'u' && hexadecimal(i + 2, 4))))
        as_json += c, as_json += next, i++;
      else as_json += "\\\\";
    }
    const Json j = parsed(as_json + '"');
    return j.is_discarded() ? Json(std::string(s)) : j;  // half a surrogate pair
  }

  std::string_view s_;
  size_t at_ = 0;
};

}  // namespace

bool is_tool_name(std::string_view s) {
  return !s.empty() && s.size() <= 256 && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == ':' || c == '/';
  });
}

std::optional<std::vector<ToolCall>> parse_tool_calls(std::string_view body) {
  const std::string_view s = trimmed(body);
  if (s.empty()) return std::nullopt;
  if (s[0] == '{' || s[0] == '[')
    if (auto calls = json_calls(s)) return calls;
  if (s[0] == '[') return PythonCalls(s).read();
  if (s.find("<function=") != s.npos) return xml_calls(s);
  if (s.find("<arg_key>") != s.npos) return key_value_calls(s);
  if (s.find('{') != s.npos) return named_json_calls(s);
  // GLM writes a call without arguments as its name.
  return is_tool_name(s) ? std::optional(std::vector<ToolCall>{{std::string(s), "{}"}}) : std::nullopt;
}

}  // namespace gimbal
