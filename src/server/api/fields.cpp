#include "server/api/fields.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "server/api/openapi.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr size_t kMaxDepth = 200;
// Of one object, and of all: each name is compared with those before it in its object.
constexpr size_t kMaxMembers = 1024, kMaxMembersInAll = 1 << 18;

// Why a text is not worth reading as JSON, before it is read. Nothing: it may be.
std::optional<std::string> too_much(const std::string& text) {
  size_t members[kMaxDepth + 1] = {}, in_all = 0, depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') i++;
      else if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return format("the body has more than {} levels", kMaxDepth);
      members[depth] = 0;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0;
    } else if (c == ':') {
      if (++members[depth] > kMaxMembers) return format("an object has more than {} members", kMaxMembers);
      if (++in_all > kMaxMembersInAll) return format("the body has more than {} members", kMaxMembersInAll);
    }
  }
  return {};
}

// 2, not 2.000000.
std::string plain(double d) {
  return d == std::floor(d) && std::abs(d) < 1e15 ? format("{}", int64_t(d)) : format("{}", d);
}

thread_local FieldRecorder* recorder = nullptr;

// "; POST /v1/chat/completions has it"
std::string where_it_is(const std::string& field) {
  const std::vector<std::string> places = endpoints_with(field);
  if (places.empty()) return "";
  return format("; {} {} it", fmt::join(places, ", "), places.size() == 1 ? "has" : "have");
}

}  // namespace

FieldRecorder::FieldRecorder() { recorder = this; }
FieldRecorder::~FieldRecorder() { recorder = nullptr; }

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) wrong("", "an object was expected");
}

void Fields::wrong_as(const ApiError& e) {
  if (!error_ && !recorder) error_ = e;
}

std::string Fields::path(const std::string& name) const {
  return where_.empty() ? name : name.empty() ? where_ : where_ + "." + name;
}

const Json* Fields::find(const char* name, FieldRead read) {
  if (recorder) return &samples_.emplace_back(recorder->sample(path(name), read));
  known_.emplace_back(name);
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

void Fields::wrong(const std::string& name, const std::string& message) {
  if (!error_ && !recorder) error_ = wrong_field(path(name), message);
}

void Fields::expected(const char* name, const std::string& what) {
  wrong(name, format("'{}' must be {}", path(name), what));
}

std::optional<double> Fields::number(const char* name, double low, double high) {
  const Json* j = find(name, {FieldRead::Number, low, high});
  if (!j) return {};
  const double d = j->is_number() ? j->get<double>() : NAN;
  if (!(d >= low && d <= high))
    return expected(name, format("a number from {} to {}", plain(low), plain(high))), std::nullopt;
  return d;
}

std::optional<int64_t> Fields::whole(const char* name, int64_t low, int64_t high) {
  const Json* j = find(name, {FieldRead::Whole, double(low), double(high)});
  if (!j) return {};
  int64_t n = 0;
  bool is_one =
      j->is_number_integer() && !(j->is_number_unsigned() && j->get<uint64_t>() > uint64_t(INT64_MAX));
  if (is_one) {
    n = j->get<int64_t>();
  } else if (j->is_number_float()) {  // 16.0, as some clients write it
    const double d = j->get<double>();
    is_one = d == std::floor(d) && std::abs(d) < 9e15;
    if (is_one) n = int64_t(d);
  }
  if (!is_one || n < low || n > high) {
    const std::string range = high == INT64_MAX ? low == INT64_MIN ? "" : format(" of at least {}", low)
                                                : format(" from {} to {}", low, high);
    return expected(name, "a whole number" + range), std::nullopt;
  }
  return n;
}

std::optional<bool> Fields::flag(const char* name) {
  const Json* j = find(name, {FieldRead::Flag});
  if (!j) return {};
  if (!j->is_boolean()) return expected(name, "true or false"), std::nullopt;
  return j->get<bool>();
}

std::optional<std::string> Fields::text(const char* name) {
  const Json* j = find(name, {FieldRead::Text});
  if (!j) return {};
  if (!j->is_string()) return expected(name, "a text"), std::nullopt;
  return j->get<std::string>();
}

std::optional<std::string> Fields::word(const char* name, std::initializer_list<const char*> words) {
  const Json* j = find(name, {FieldRead::Word, 0, 0, {words.begin(), words.end()}});
  if (!j) return {};
  if (j->is_string())
    for (const char* w : words)
      if (j->get_ref<const std::string&>() == w) return std::string(w);
  return expected(name, format("one of {}", fmt::join(words, ", "))), std::nullopt;
}

const Json* Fields::object(const char* name) {
  const Json* j = find(name, {FieldRead::Object});
  if (j && !j->is_object()) return expected(name, "an object"), nullptr;
  return j;
}

const Json* Fields::array(const char* name) {
  const Json* j = find(name, {FieldRead::List});
  if (j && !j->is_array()) return expected(name, "a list"), nullptr;
  return j;
}

const Json* Fields::any(const char* name) { return find(name, {FieldRead::Any}); }

std::vector<std::string> Fields::texts(const char* name, size_t most) {
  const Json* j = find(name, {FieldRead::Texts});
  if (!j) return {};
  if (j->is_string()) return {j->get<std::string>()};
  std::vector<std::string> all;
  bool right = j->is_array() && j->size() <= most;
  if (right)
    for (const Json& one : *j) {
      right = right && one.is_string();
      if (one.is_string()) all.push_back(one.get<std::string>());
    }
  if (!right) expected(name, format("a text or a list of at most {}", most));
  return right ? all : std::vector<std::string>{};
}

bool Fields::need(const char* name) {
  if (recorder) return recorder->needed(path(name)), true;
  if (object_.is_object() && object_.contains(name) && !object_[name].is_null()) return true;
  wrong(name, format("'{}' is missing", path(name)));
  return false;
}

void Fields::harmless(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (recorder) recorder->sample(path(name), {FieldRead::Harmless});
    known_.emplace_back(name);
  }
}

void Fields::refuse(const char* name, const char* why, const Json& unless) {
  if (recorder) {
    if (!unless.is_null()) recorder->sample(path(name), {FieldRead::Only, 0, 0, {dump(unless)}});
    return;
  }
  const Json* j = find(name, {});
  if (j && *j != unless) wrong(name, format("'{}' is not supported: {}", path(name), why));
}

std::vector<std::string> Fields::take_unread() {
  std::vector<std::string> all;
  if (object_.is_object())
    for (const auto& [key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) all.push_back(key);
  known_.insert(known_.end(), all.begin(), all.end());
  return all;
}

Refused Fields::finish() {
  if (recorder) {
    recorder->finished(where_);
    // The handler ends here, before it computes anything.
    return where_.empty() ? Refused(ApiError{0, "the fields are recorded"}) : Refused();
  }
  if (!error_ && object_.is_object())
    for (const auto& [key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        error_ = wrong_field(path(key), format("there is no field {} here{}", gimbal::quoted(path(key)),
                                               where_.empty() ? where_it_is(key) : ""));
        break;
      }
  return error_;
}

Refused parse_body(const std::string& text, Json& to, const char* list) {
  // The parser would stop at a zero byte and ignore the text after it.
  if (text.find('\0') != text.npos)
    return wrong_field("", "the body has a zero byte, so it is not valid JSON");
  if (auto why = too_much(text)) return wrong_field("", *why);
  to = parse_json(text);
  if (to.is_discarded())
    return wrong_field("", is_utf8(text) ? "the body is not valid JSON" : "the body is not UTF-8");
  if (list && to.is_array()) to = {{list, std::move(to)}};
  if (!to.is_object()) return wrong_field("", "the body is not an object");
  return {};
}

}  // namespace gimbal::api
