// The options of the C interface: JSON objects whose keys are the members of the public structs. What
// settings there are comes from the tables that the command line reads as well.
#include <climits>
#include <cmath>

#include "base/text.h"
#include "engine/settings_table.h"
#include "library/c_handles.h"
#include "runtime/sampling_table.h"

namespace gimbal::v1::c {
namespace {

// take(json, to) returns the expected type, or nullptr on success.
const char* take(const Json& j, bool& to) {
  if (!j.is_boolean()) return "true or false";
  return to = j.get<bool>(), nullptr;
}
const char* take(const Json& j, int& to) {
  constexpr const char* kWhole = "a whole number";
  if (!j.is_number_integer()) return kWhole;
  if (j.is_number_unsigned() ? j.get<uint64_t>() > uint64_t(INT_MAX) : j.get<int64_t>() < INT_MIN)
    return kWhole;
  return to = j.get<int>(), nullptr;
}
const char* take(const Json& j, uint64_t& to) {
  if (!j.is_number_unsigned()) return "a whole number from 0";
  return to = j.get<uint64_t>(), nullptr;
}
const char* take(const Json& j, float& to) {
  if (!j.is_number() || !std::isfinite(j.get<float>())) return "a number";
  return to = j.get<float>(), nullptr;
}
const char* take(const Json& j, std::string& to) {
  if (!j.is_string()) return "a text";
  return to = j.get<std::string>(), nullptr;
}
template <class T>
const char* take(const Json& j, std::optional<T>& to) {
  if (j.is_null()) return to.reset(), nullptr;
  return take(j, to.emplace());
}
const char* take(const Json& j, std::vector<std::string>& to) {
  constexpr const char* kTexts = "an array of texts";
  if (!j.is_array()) return kTexts;
  to.clear();
  for (const Json& item : j)
    if (take(item, to.emplace_back())) return kTexts;
  return nullptr;
}

// Bytes of files, each as base64.
struct Files {
  std::vector<std::string>& all;
};
const char* take(const Json& j, Files& to) {
  constexpr const char* kFiles = "an array of files, each as base64";
  if (!j.is_array()) return kFiles;
  to.all.clear();
  for (const Json& item : j) {
    auto file = item.is_string() ? gimbal::base64_decoded(item.get_ref<const std::string&>()) : std::nullopt;
    if (!file) return kFiles;
    to.all.push_back(std::move(*file));
  }
  return nullptr;
}

const char* take(const Json& j, std::vector<float>& to) {
  constexpr const char* kNumbers = "an array of numbers";
  if (!j.is_array()) return kNumbers;
  to.clear();
  for (const Json& item : j)
    if (take(item, to.emplace_back())) return kNumbers;
  return nullptr;
}

// The members of an object; false: one is missing, unknown, or of another type.
template <class A, class B>
bool take_pair(const Json& j, const char* first, A& a, const char* second, B& b) {
  if (!j.is_object() || !j.contains(first)) return false;
  for (const auto& [key, value] : j.items()) {
    if (key == first && !take(value, a)) continue;
    if (key == second && !take(value, b)) continue;
    return false;
  }
  return true;
}
const char* take(const Json& j, std::vector<DeviceLayers>& to) {
  constexpr const char* kLayers = R"(an array of {"device": "cuda:0", "layers": 20})";
  if (!j.is_array()) return kLayers;
  to.clear();
  for (const Json& item : j) {
    auto& last = to.emplace_back();
    if (!take_pair(item, "device", last.device, "layers", last.layers)) return kLayers;
  }
  return nullptr;
}
const char* take(const Json& j, std::vector<LoraAdapter>& to) {
  constexpr const char* kAdapters = R"(an array of {"path": "adapter.gguf", "scale": 1})";
  if (!j.is_array()) return kAdapters;
  to.clear();
  for (const Json& item : j) {
    auto& last = to.emplace_back();
    if (!take_pair(item, "path", last.path, "scale", last.scale)) return kAdapters;
  }
  return nullptr;
}
// JSON has no infinity: null forbids the token.
const char* take(const Json& j, std::vector<std::pair<int32_t, float>>& to) {
  constexpr const char* kBias = "an array of [token, number or null]";
  if (!j.is_array()) return kBias;
  to.clear();
  for (const Json& item : j) {
    auto& [token, value] = to.emplace_back(0, -HUGE_VALF);
    if (!item.is_array() || item.size() != 2 || take(item[0], token)) return kBias;
    if (!item[1].is_null() && take(item[1], value)) return kBias;
  }
  return nullptr;
}
const char* take(const Json& j, std::vector<Tool>& to) {
  constexpr const char* kTools = R"(an array of {"name": "...", "description": "...", "parameters": {...}})";
  if (!j.is_array()) return kTools;
  to.clear();
  for (const Json& item : j) {
    // As OpenAI's API writes it: {"type": "function", "function": {...}}.
    const Json& tool = item.is_object() && item.contains("function") ? item["function"] : item;
    if (!tool.is_object() || !tool.contains("name")) return kTools;
    Tool& t = to.emplace_back();
    for (const auto& [key, value] : tool.items()) {
      if (key == "name" && !take(value, t.name)) continue;
      if (key == "description" && !take(value, t.description)) continue;
      if (key == "parameters" && value.is_object()) {
        t.parameters = value.dump();
        continue;
      }
      return kTools;
    }
  }
  return nullptr;
}

class Members {
 public:
  using Take = std::function<std::optional<std::string>(const Json&)>;

  template <class T>
  void add(const char* name, T& to) {
    all_.emplace_back(name, [&to](const Json& j) {
      const char* expected = take(j, to);
      return expected ? std::optional<std::string>(expected) : std::nullopt;
    });
  }
  void add_files(const char* name, std::vector<std::string>& to) {
    all_.emplace_back(name, [files = Files{to}](const Json& j) mutable {
      const char* expected = take(j, files);
      return expected ? std::optional<std::string>(expected) : std::nullopt;
    });
  }
  // An enumeration; `words`: of its values, in order.
  template <class E>
  void add(const char* name, E& to, std::string_view words) {
    all_.emplace_back(name, [&to, words](const Json& j) -> std::optional<std::string> {
      int value = 0;
      for (std::string_view rest = words; !rest.empty(); value++) {
        const std::string_view word = rest.substr(0, rest.find('|'));
        if (j.is_string() && j.get_ref<const std::string&>() == word) return to = E(value), std::nullopt;
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      }
      return format("one of {}", words);
    });
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& m : all_) all.push_back(m.first);
    return all;
  }

  Status read(const char* json) const {
    if (!json) return Done{};
    const Json object = parse_json(json);
    if (!object.is_object())
      return usage(format("the options are no JSON object: {}", gimbal::quoted(json)),
                   R"(write them as {"name": value}; NULL: the defaults)", "options");
    for (const auto& [name, value] : object.items()) {
      const auto at =
          std::find_if(all_.begin(), all_.end(), [&name = name](const auto& m) { return m.first == name; });
      if (at == all_.end()) return unknown(name);
      if (auto expected = at->second(value)) {
        Error e =
            usage(format("'{}' must be {}, not {}", name, *expected, gimbal::quoted(written(value))), "", "");
        e.field = name, e.value = written(value), e.limit = std::move(*expected);
        return e;
      }
    }
    return Done{};
  }

 private:
  Error unknown(const std::string& name) const {
    const std::vector<std::string> known = names();
    const auto similar = gimbal::nearest(name, known);
    Error e = usage(
        format("there is no option {} here", gimbal::quoted(name)),
        similar ? format("did you mean '{}'?", *similar) : format("there are {}", fmt::join(known, ", ")),
        "");
    e.field = name;
    return e;
  }

  std::vector<std::pair<std::string, Take>> all_;
};

// The settings of the table that belong to this struct.
template <class Struct>
void add_settings(Members& m, Struct& to) {
  for (const EngineSetting& s : kEngineSettings)
    std::visit(
        [&]<class T, class Of>(T Of::*member) {
          if constexpr (std::is_base_of_v<Of, Struct>) {
            if constexpr (std::is_enum_v<T>) m.add(s.field, to.*member, s.words);
            else m.add(s.field, to.*member);
          }
        },
        s.member);
}

void add_text_options(Members& m, TextOptions& o) {
  for (const SamplingSetting& s : kSamplingSettings)
    std::visit([&](auto member) { m.add(s.field, o.*member); }, s.member);
  m.add("max_tokens", o.max_tokens), m.add("stops", o.stops);
  m.add("ignore_stop_tokens", o.ignore_stop_tokens), m.add("grammar", o.grammar);
  m.add("json_schema", o.json_schema), m.add("complete", o.complete), m.add("logprobs", o.logprobs);
  m.add("prompt_logprobs", o.prompt_logprobs);
  m.add("certificate", o.certificate);
  m.add("adapters", o.adapters);
  m.add_files("images", o.images);
}

}  // namespace

static Members members_of(Options& o) {
  Members m;
  add_settings(m, static_cast<DeviceSettings&>(o));
  m.add("plugin_folders", o.plugin_folders);
  m.add("prefix_store", o.prefix_store.folder), m.add("prefix_store_bytes", o.prefix_store.bytes);
  m.add("prefix_store_salt", o.prefix_store.salt);
  return m;
}
static Members members_of(ModelOptions& o) {
  Members m;
  add_settings(m, o);
  return m;
}
Status read(const char* json, Options& o) { return members_of(o).read(json); }
Status read(const char* json, ModelOptions& o) { return members_of(o).read(json); }
std::vector<std::string> names_of(const Options& o) {
  Options any = o;
  return members_of(any).names();
}
std::vector<std::string> names_of(const ModelOptions& o) {
  ModelOptions any = o;
  return members_of(any).names();
}

Status read(const char* json, TextOptions& o) {
  Members m;
  add_text_options(m, o);
  return m.read(json);
}

Status read(const char* json, ChatOptions& o) {
  Members m;
  add_text_options(m, o);
  m.add("tools", o.tools), m.add("tool_choice", o.tool_choice, "auto|none|required"), m.add("tool", o.tool);
  m.add("parallel_calls", o.parallel_calls), m.add("think", o.think), m.add("effort", o.effort);
  m.add("template_variables", o.template_variables);
  m.add("reasoning_budget", o.reasoning_budget);
  return m.read(json);
}

Status read(const char* json, BatchOptions& o) {
  Members m;
  m.add("queue", o.queue), m.add("prompt_rows", o.prompt_rows);
  return m.read(json);
}

Status read(const char* json, Tokenizing& o) {
  Members m;
  m.add("add_bos", o.add_bos), m.add("parse_special", o.parse_special);
  return m.read(json);
}

Status read(const char* json, Embedding& o) {
  Members m;
  m.add("pooling", o.pooling, "of_file|mean|first|last"), m.add("normalised", o.normalised);
  return m.read(json);
}

Status read(const char* json, Pulling& o) {
  Members m;
  m.add("connections", o.connections), m.add("sha256", o.sha256);
  return m.read(json);
}

Result<Message> message_of(const char* json) {
  const Error wrong = usage(format("this is no message: {}", gimbal::quoted(json)),
                            R"(write it as {"role": "user", "content": "a text"})", "json");
  const Json object = parse_json(json);
  if (!object.is_object() || !object.contains("role")) return wrong;
  Message m;
  for (const auto& [key, value] : object.items()) {
    if (key == "role" && !take(value, m.role)) continue;
    if (key == "content" && (value.is_null() || !take(value, m.content))) continue;
    if ((key == "reasoning" || key == "reasoning_content") && !take(value, m.reasoning)) continue;
    if (key == "tool_call_id" && !take(value, m.tool_call_id)) continue;
    if (Files files{m.images}; key == "images" && !take(value, files)) continue;
    if (key != "tool_calls" || !value.is_array()) return wrong;
    for (const Json& call : value) {
      const Json& function = call.is_object() && call.contains("function") ? call["function"] : call;
      ToolCall& c = m.tool_calls.emplace_back();
      if (!function.is_object() || !function.contains("name") || take(function["name"], c.name)) return wrong;
      if (call.contains("id") && take(call["id"], c.id)) return wrong;
      const Json arguments = function.value("arguments", Json::object());
      c.arguments = arguments.is_string() ? arguments.get<std::string>() : arguments.dump();
    }
  }
  return m;
}

}  // namespace gimbal::v1::c
