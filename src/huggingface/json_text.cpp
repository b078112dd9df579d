// hot: every token of a vocabulary
#include "huggingface/json_text.h"

#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {

class JsonText::Handler final : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(JsonText& to) : to_(to) {}

  std::string problem;
  size_t at = 0;

  bool null() override { return leaf(nullptr); }
  bool boolean(bool v) override { return leaf(v); }
  bool number_integer(number_integer_t v) override { return passing_ ? pass(double(v)) : leaf(v); }
  bool number_unsigned(number_unsigned_t v) override { return passing_ ? pass(double(v)) : leaf(v); }
  bool number_float(number_float_t v, const string_t&) override { return passing_ ? pass(v) : leaf(v); }
  bool binary(binary_t&) override { return fail("binary data"); }
  bool string(string_t& v) override {
    if (!passing_) return leaf(std::move(v));
    to_.text(passed_, passing_, passing_ == 1 ? key_ : kNone, v);
    return true;
  }
  bool key(string_t& k) override {
    key_ = std::move(k);
    return true;
  }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    at = position;
    return false;
  }

 private:
  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool pass(double v) {
    to_.number(passed_, passing_, passing_ == 1 ? key_ : kNone, v);
    return true;
  }
  // Puts a value into the innermost object or list of the tree.
  Json* put(Json value) {
    if (open_.empty()) return &(to_.tree_ = std::move(value));
    Json& into = *open_.back();
    if (into.is_array()) {
      into.push_back(std::move(value));
      return &into.back();
    }
    if (into.size() >= kMaxMembers) return nullptr;
    Json& member = into[key_];
    member = std::move(value);
    return &member;
  }
  bool leaf(Json value) {
    if (passing_) return true;
    if (open_.empty()) return fail("expected an object");
    return put(std::move(value)) || fail(format("an object has more than {} members", kMaxMembers));
  }
  bool open(Json empty) {
    if (++depth_ > kMaxDepth) return fail(format("it is nested more than {} times", kMaxDepth));
    if (passing_) return ++passing_, true;
    if (open_.empty() && !empty.is_object()) return fail("expected an object");
    const std::string path = open_.empty() ? "" : names_.back() + (open_.back()->is_array() ? "" : key_);
    if (!open_.empty() && to_.passes(path)) {
      passed_ = path;
      passing_ = 1;
      return true;
    }
    Json* made = put(std::move(empty));
    if (!made) return fail(format("an object has more than {} members", kMaxMembers));
    open_.push_back(made);
    names_.push_back(path.empty() ? path : path + ".");
    return true;
  }
  bool close() {
    depth_--;
    if (passing_) return --passing_, true;
    open_.pop_back(), names_.pop_back();
    return true;
  }

  static inline const std::string kNone;
  JsonText& to_;
  std::vector<Json*> open_;  // pointers into the tree: only the innermost grows
  std::vector<std::string> names_;
  std::string key_, passed_;
  int depth_ = 0, passing_ = 0;
};

Status JsonText::parse(std::string_view text, const std::string& path) {
  Handler handler(*this);
  if (Json::sax_parse(text.begin(), text.end(), &handler)) return Done{};
  const std::string what =
      handler.problem.empty() ? format("it is no valid JSON at byte {}", handler.at) : handler.problem;
  return Error{Code::Malformed, format("'{}': {}", escaped(path), what),
               "The file is damaged: get it again."};
}

namespace {

class Without final : public JsonText {
 public:
  explicit Without(std::string name) : name_(std::move(name)) {}

 private:
  bool passes(const std::string& path) override { return path == name_; }
  std::string name_;
};

}  // namespace

Result<Json> parse_json_object(std::string_view text, const std::string& path, const char* without) {
  Without json(without);
  if (auto ok = json.parse(text, path); !ok) return ok.error();
  return json.tree();
}

Result<Json> read_json_object(const std::string& path, uint64_t max_bytes) {
  const auto text = read_file(path, max_bytes);
  if (!text) return text.error();
  return parse_json_object(*text, path);
}

}  // namespace gimbal
