// The frame of rendering: variables in, text out, errors and limits.
#include "template/interpreter.h"

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"

namespace gimbal::tmpl {

const Value* Scope::find(std::string_view name) const {
  for (const auto& [n, v] : names)
    if (n == name) return &v;
  return nullptr;
}

void Scope::set(std::string_view name, const Value& v) {
  for (auto& [n, old] : names)
    if (n == name) {
      old = v;
      return;
    }
  names.emplace_back(name, v);
}

Value Interpreter::fail(std::string_view what, const char* reason) {
  if (!error_) {
    const char* where = at_ ? construct(at_->kind) : "the variables";
    error_ = Error{Code::Failed, format("chat template, line {}, in {}: {}", line_, where, what), "", reason};
  }
  return Value(Kind::Undefined);
}

bool Interpreter::spend(uint64_t steps) {
  const RenderLimits& most = options_.limits;
  steps_ += steps;
  if (steps_ > most.steps) stop(format("stopped after {} steps", most.steps));
  if (heap.bytes() + scopes_.size() * 2 * sizeof(Scope) > most.memory_bytes)
    stop(format("its values take more than {} bytes", most.memory_bytes));
  if (heap.largest().depth > kMaxValueDepth || heap.largest().weight > kMaxValueWeight)
    fail("a list or dict is nested too deeply");
  return !failed();
}

namespace {

std::string repaired(const std::string& s) {
  if (is_utf8(s)) return s;
  std::string out;
  for (size_t at = 0; at < s.size();) {
    const Utf8Step c = utf8_step(s, at);
    if (c.kind == Utf8Step::Whole) out += s.substr(at, c.bytes);
    else out += "\xef\xbf\xbd";
    at += c.bytes;
  }
  return out;
}

// A role is put between "<|" and "|>"; that must stay a control token. A word can do no harm there.
bool plain_word(const std::string& s) {
  for (char c : s)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return false;
  return true;
}

}  // namespace

Value Interpreter::from_json(const Json& j, std::string_view key, bool foreign, int depth) {
  if (depth > int(kMaxValueDepth) || !spend(1)) return fail("the variables are nested too deeply");
  switch (j.type()) {
    case Json::value_t::boolean: return Value::of(j.get<bool>());
    case Json::value_t::number_integer: return Value::of(j.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (j.get<uint64_t>() > uint64_t(INT64_MAX))
        return fail("a variable is a whole number of more than 63 bits");
      return Value::of(j.get<int64_t>());
    case Json::value_t::number_float: return Value::of(j.get<double>());
    case Json::value_t::string: {
      const std::string s = repaired(*j.get_ptr<const std::string*>());
      return heap.str(s, foreign && !(key == "role" && plain_word(s)));
    }
    case Json::value_t::array: {
      std::vector<Value> items;
      for (const Json& item : j) items.push_back(from_json(item, "", true, depth + 1));
      return heap.list(std::move(items));
    }
    case Json::value_t::object: {
      Dict d;
      for (auto it = j.begin(); it != j.end(); ++it)
        d.items.emplace_back(heap.str(repaired(it.key()), true),
                             from_json(it.value(), it.key(), true, depth + 1));
      return heap.dict(std::move(d));
    }
    default: return Value(Kind::None);
  }
}

Scope* Interpreter::scope(Scope* parent) { return &scopes_.emplace_back(Scope{parent, {}}); }

Result<Rendered> Interpreter::run(const Json& variables) {
  Text out;
  out_ = &out;
  scope_ = scope(nullptr);
  for (auto it = variables.begin(); it != variables.end(); ++it)
    scope_->names.emplace_back(heap.str(it.key()).str(),
                               from_json(it.value(), it.key(), !it.key().ends_with("_token"), 1));
  scope_ = scope(scope_);
  if (!failed()) body(tree_.body);
  if (error_) return *error_;
  return Rendered{std::move(out.bytes), std::move(out.foreign)};
}

}  // namespace gimbal::tmpl

namespace gimbal {

Template::Template(std::unique_ptr<const tmpl::Tree> tree) : tree_(std::move(tree)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source) {
  auto tree = tmpl::parse(source);
  if (!tree) return tree.error();
  return Template(std::move(*tree));
}

Result<Rendered> Template::render(const Json& variables, const RenderOptions& options) const {
  if (!variables.is_object())
    return Error{Code::Usage, "the variables of a chat template must be a JSON object",
                 "give {\"messages\": [...]}"};
  return tmpl::Interpreter(*tree_, options).run(variables);
}

}  // namespace gimbal
