#include "apps/toolkit/config_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/folders.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

class ConfigReader {
 public:
  ConfigReader(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  Result<std::vector<ConfigEntry>> run() {
    std::vector<ConfigEntry> all;
    for (;;) {
      skip(true);
      if (at_end()) return all;
      if (here() == '[') {
        if (auto ok = section(); !ok) return ok.error();
        continue;
      }
      auto e = entry();
      if (!e) return e.error();
      for (const ConfigEntry& other : all)
        if (other.name == e->name && other.model == e->model)
          return wrong(e->line, format("'{}' stands in line {} already", e->name, other.line));
      all.push_back(std::move(*e));
    }
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return at_end() ? '\n' : text_[at_]; }
  void step() { line_ += text_[at_++] == '\n'; }
  // White space and comments; over the ends of lines where `lines`.
  void skip(bool lines) {
    while (!at_end() && (here() == ' ' || here() == '\t' || here() == '\r' || (lines && here() == '\n')))
      step();
    if (here() != '#') return;
    while (here() != '\n') step();
    if (lines) skip(true);
  }

  Error wrong(int line, const std::string& what) const {
    return {Code::Usage, format("{}, line {}: {}", source_, line, what),
            "write lines such as: port = 8080, host = \"127.0.0.1\", api-key = [\"one\", \"two\"]"};
  }

  // [model.NAME] or [model."NAME"]
  Status section() {
    size_t end = at_ + 1;
    for (char quote = 0; end < text_.size() && text_[end] != '\n' && (quote || text_[end] != ']'); end++) {
      if (quote && text_[end] == quote) quote = 0;
      else if (!quote && (text_[end] == '"' || text_[end] == '\'')) quote = text_[end];
    }
    const std::string head = text_.substr(at_, end + 1 - at_);
    if (!head.starts_with("[model.") || !head.ends_with(']'))
      return wrong(line_, "there are no tables here but [model.NAME]");
    std::string name = head.substr(7, head.size() - 8);
    if (name.starts_with('"')) {
      const Json text = parse_json(name);
      name = text.is_string() ? text.get<std::string>() : "";
    } else if (name.size() > 1 && name.front() == '\'' && name.back() == '\'') {
      name = name.substr(1, name.size() - 2);
    } else if (name.find_first_of("\"' \t[]#:/.") != name.npos) {
      return wrong(line_, "a name with other characters than letters, digits, - and _ stands in quotes");
    }
    if (name.empty()) return wrong(line_, "the section names no model");
    model_ = name;
    at_ = end + 1;
    skip(false);
    if (here() != '\n') return wrong(line_, "there is more behind the name of the section");
    return Done{};
  }

  Result<ConfigEntry> entry() {
    ConfigEntry e;
    e.line = line_, e.model = model_;
    while (here() != '\n' && here() != '=' && here() != '#') e.name += text_[at_++];
    while (!e.name.empty() && std::strchr(" \t\r", e.name.back())) e.name.pop_back();
    if (e.name.empty() || here() != '=') return wrong(e.line, "this is no NAME = VALUE");
    step();
    skip(false);
    e.list = here() == '[';
    if (auto ok = e.list ? list(e) : one(e); !ok) return ok.error();
    skip(false);
    if (here() != '\n') return wrong(line_, format("there is more behind the value of '{}'", e.name));
    return e;
  }

  Status list(ConfigEntry& to) {
    step();
    for (;;) {
      skip(true);
      if (here() == ']') return step(), Done{};
      if (!at_end())
        if (auto ok = one(to); !ok) return ok.error();
      skip(true);
      if (at_end()) return wrong(to.line, format("the list of '{}' has no end", to.name));
      if (here() == ',') step();
      else if (here() != ']') return wrong(line_, format("a comma or ] is missing in '{}'", to.name));
    }
  }

  Status one(ConfigEntry& to) {
    const size_t begin = at_;
    const char quote = here();
    if (quote == '"' || quote == '\'') {
      for (at_++; here() != quote; at_++) {
        if (here() == '\\' && quote == '"') at_++;
        if (here() == '\n') return wrong(line_, format("the text of '{}' has no end", to.name));
      }
      at_++;
      const std::string all = text_.substr(begin, at_ - begin);
      if (quote == '\'') return to.values.push_back(all.substr(1, all.size() - 2)), Done{};
      const Json text = parse_json(all);
      if (!text.is_string()) return wrong(line_, format("the text of '{}' has an unknown escape", to.name));
      return to.values.push_back(text.get<std::string>()), Done{};
    }
    while (!std::strchr(to.list ? " \t\r\n#,]\"'[" : "\r\n#\"'[]", here())) at_++;
    std::string word = text_.substr(begin, at_ - begin);
    while (!word.empty() && std::strchr(" \t", word.back())) word.pop_back();
    if (word.empty()) return wrong(line_, format("'{}' has no value", to.name));
    return to.values.push_back(std::move(word)), Done{};
  }

  const std::string& text_;
  const std::string& source_;
  size_t at_ = 0;
  int line_ = 1;
  std::string model_;  // of the section
};

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(const std::string& text, const std::string& source) {
  if (!is_utf8(text) || text.find('\0') != text.npos)
    return Error{Code::Usage, format("{} is no text in UTF-8", source),
                 "give a file of options: port = 8080"};
  return ConfigReader(text, source).run();
}

Result<std::vector<ConfigEntry>> read_config(const std::string& path) {
  const auto failed = [&](const char* why) {
    return Error{errno == ENOENT ? Code::NotFound : Code::Failed,
                 format("cannot read the configuration {}: {}", gimbal::quoted(path), why), "see --config"};
  };
  FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return failed(std::strerror(errno));
  std::string text(kMaxBytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  const bool whole = !std::ferror(file) && text.size() < kMaxBytes;
  std::fclose(file);
  if (!whole) return failed(text.size() == kMaxBytes ? "it has more than 1 MB" : std::strerror(errno));
  return parse_config(text, path);
}

std::string user_config_file() {
  for (const auto& [variable, below] : {std::pair("XDG_CONFIG_HOME", ""), std::pair("HOME", "/.config")})
    if (const std::string at = environment_variable(variable); at.starts_with('/'))
      return at + below + "/gimbal/config";
  return "";
}

}  // namespace gimbal
