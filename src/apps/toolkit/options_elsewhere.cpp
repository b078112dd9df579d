// Where options come from that were not typed: the environment, the file of --config, and the user's own
// file.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "apps/toolkit/arguments.h"
#include "apps/toolkit/config_file.h"
#include "apps/toolkit/terminal.h"
#include "apps/toolkit/words_elsewhere.h"

namespace gimbal {
namespace {

// "GIMBAL_API_KEY" of "--api-key".
std::string variable_of(const std::string& option) {
  std::string name = "GIMBAL";
  for (char c : option.substr(1)) name += c == '-' ? '_' : char(std::toupper(uint8_t(c)));
  return name;
}

// Variables that other parts of the program and its tests read; without the prefix.
constexpr const char* kOtherVariables[] = {"MODELS", "BACKEND_PATH", "GOLDEN", "ARGS"};

// What Kubernetes says of a Service whose name begins with "gimbal": GIMBAL_SERVICE_HOST,
// GIMBAL_PORT_8080_TCP_ADDR, GIMBAL_FRONT_PORT.
bool is_of_a_service(const std::string& name, std::string_view value) {
  const std::string all = "_" + name + "_";
  return all.find("_SERVICE_") != all.npos || all.find("_TCP_") != all.npos ||
         all.find("_UDP_") != all.npos || (name.ends_with("PORT") && value.find("://") != value.npos);
}

// With their hyphens.
std::vector<std::string> long_names(const std::string& names) {
  std::vector<std::string> all = split(names, ',');
  std::erase_if(all, [](const std::string& n) { return !n.starts_with("--"); });
  return all;
}

}  // namespace

void Arguments::configurable(std::function<bool()> wanted) {
  configurable_ = std::move(wanted);
  text("--config", "FILE", "options from a file: each line is NAME = VALUE, such as port = 8080", config_);
  remark("$GIMBAL_NAME",
         "the environment has the same names: GIMBAL_PORT=8080. What is typed comes first, then the "
         "environment, then the file. Several values: [\"one\", \"two\"]");
}

// One option from the file or from a variable, which `source` names.
Status Arguments::settle(Declared& d, const ConfigEntry& e, const std::string& source) {
  const auto wrong = [&](const std::string& what) {
    return Error{Code::Usage, format("{}: {} {}", source, e.name, what),
                 format("`{} --help` lists what it takes", command_)};
  };
  if (e.list && !d.repeatable) return wrong("takes one value");
  for (const std::string& value : e.values)
    if (auto expected = d.set(value))
      return wrong(format("must be {}, not {}", *expected, gimbal::quoted(value)));
  return Done{};
}

// True: set by an environment variable.
Result<bool> Arguments::settle_by_environment(Declared& d) {
  // --cuda-device N names a backend as well, and typed options come first.
  if (d.names.starts_with("--backend"))
    for (const Declared& other : declared_)
      if (other.names.ends_with("-device") && typed(other)) return false;
  for (const std::string& name : long_names(d.names)) {
    const std::string variable = variable_of(name);
    const char* value = std::getenv(variable.c_str());
    if (!value || !*value) continue;
    // Variables that Kubernetes sets for a Service called gimbal.
    if (variable == "GIMBAL_PORT" && std::string_view(value).starts_with("tcp://")) continue;
    ConfigEntry e{variable, {value}, false, 1};
    if (*value == '[') {
      auto list = parse_config(format("{} = {}", variable, value), "the environment");
      if (!list) return list.error();
      e = (*list)[0];
    }
    if (auto ok = settle(d, e, "the environment"); !ok) return ok.error();
    return true;
  }
  if (!all_names_) return false;
  const bool model_typed = !line_.given("MODEL").empty() || !line_.given("--model").empty();
  for (const std::string& name : long_names(d.names)) {
    const auto theirs = variable_elsewhere(name, model_typed);
    if (!theirs) continue;
    if (auto ok = settle(d, {theirs->name, {theirs->value}, false, 1}, "the environment"); !ok)
      return ok.error();
    if (line_.given("--quiet").empty())
      note(format("note: {} sets {} {}; gimbal's own variable is {}", theirs->name, name, theirs->value,
                  variable_of(name)));
    return true;
  }
  return false;
}

namespace {

// Variables of others may have this prefix, too, so only a name that is near to an option is a mistake.
Status refuse_mistyped_variables(const Arguments& arguments,
                                 std::function<std::vector<std::string>()> options_of_others) {
  constexpr std::string_view kPrefix = "GIMBAL_";
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  const auto add = [&](const std::string& option) {
    known.push_back(variable_of(option).substr(kPrefix.size()));
  };
  const auto is_known = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  for (const Arguments::Declared& d : arguments.declared())
    for (const std::string& name : long_names(d.names))
      if (d.set) add(name);
  for (char** v = environ; v && *v; v++) {
    const std::string_view whole = *v;
    const size_t equals = whole.find('=');
    if (!whole.starts_with(kPrefix) || equals == whole.npos || equals + 1 == whole.size()) continue;
    const std::string name(whole.substr(kPrefix.size(), equals - kPrefix.size()));
    if (is_known(name)) continue;
    if (const auto others = std::exchange(options_of_others, {}))  // only now: it declares every command
      for (const std::string& option : others()) add(option);
    if (is_known(name)) continue;
    if (is_of_a_service(name, whole.substr(equals + 1)) || name.starts_with("TEST_")) continue;
    if (const auto similar = nearest(name, known))
      return Error{Code::Usage,
                   format("the environment: {} has no option {}", arguments.command(),
                          gimbal::quoted(std::string(kPrefix) + name)),
                   format("did you mean {}{}? Unset what is not for gimbal", kPrefix, *similar)};
  }
  return Done{};
}

}  // namespace

Status Arguments::settle() {
  if (auto ok = refuse_mistyped_variables(*this, all_names_); !ok) return ok;
  std::vector<const Declared*> settled;
  for (Declared& d : declared_) {
    if (!d.set) continue;
    Result<bool> found = typed(d) > 0;
    if (!*found) found = settle_by_environment(d);
    if (!found) return found.error();
    if (*found) settled.push_back(&d);
  }
  if (config_)
    if (auto ok = settle_by_file(*config_, false, settled); !ok) return ok;
  if (!all_names_) return Done{};
  const std::string own = user_config_file();
  return own.empty() || access(own.c_str(), F_OK) != 0 ? Done{} : settle_by_file(own, true, settled);
}

// `shared`: by all commands. Skips the options in `settled`, and adds those that it sets.
Status Arguments::settle_by_file(const std::string& path, bool shared,
                                 std::vector<const Declared*>& settled) {
  auto entries = read_config(path);
  if (!entries) return entries.error();
  std::vector<const Declared*> in_file;
  for (const ConfigEntry& e : *entries) {
    const std::string source = format("{}, line {}", path, e.line);
    if (!e.model.empty()) {
      if (!take_section_)
        return Error{Code::Usage, format("{}: {} has no settings of single models", source, command_),
                     "leave the sections out"};
      take_section_(e, source);
      continue;
    }
    std::vector<std::string> known;
    Declared* meant = nullptr;
    for (Declared& d : declared_)
      for (const std::string& name : long_names(d.names)) {
        if (!d.set || name == "--config") continue;
        known.push_back(name.substr(2));
        if (known.back() == e.name) meant = &d;
      }
    if (!meant && shared) {
      const std::vector<std::string> all = all_names_();
      if (std::find(all.begin(), all.end(), "--" + e.name) != all.end()) continue;
      for (const std::string& name : all) known.push_back(name.substr(2));
    }
    if (!meant) {
      const auto similar = nearest(e.name, known);
      return Error{
          Code::Usage,
          format("{}: {} has no option {}", source, shared ? "gimbal" : command_, gimbal::quoted(e.name)),
          format("{}`{} --help` lists what it takes", similar ? format("did you mean {}? ", *similar) : "",
                 command_)};
    }
    if (std::find(in_file.begin(), in_file.end(), meant) != in_file.end())
      return Error{Code::Usage, format("{}: '{}' is the same as an option above", source, e.name),
                   "keep one of them"};
    in_file.push_back(meant);
    if (std::find(settled.begin(), settled.end(), meant) != settled.end()) continue;
    if (auto ok = settle(*meant, e, source); !ok) return ok;
  }
  settled.insert(settled.end(), in_file.begin(), in_file.end());
  return Done{};
}

}  // namespace gimbal
