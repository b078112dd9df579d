// The options of one command: declared once, then parsed, and listed by --help. Checks number ranges here,
// so that all range errors have the same wording.
#pragma once
#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/toolkit/command_line.h"
#include "apps/toolkit/config_file.h"
#include "apps/toolkit/words_elsewhere.h"
#include "base/format.h"
#include "base/result.h"
#include "base/text.h"

namespace gimbal {

class Arguments {
 public:
  // `command`: as in "gimbal run"; `about`: one or two lines for --help.
  Arguments(std::string command, std::string about);
  Arguments(const Arguments&) = delete;  // the declarations point into this object

  // parse() writes to the given variables, which must live until then. `names`: "-n,--tokens". `value`: the
  // placeholder in --help.
  void section(std::string title);  // of the options declared from here on
  void example(std::string line);
  void positional(const char* name, const char* help, std::optional<std::string>& to);
  // One or more: NAME...
  void positionals(const char* name, const char* help, std::vector<std::string>& to);
  // The positional MODEL, also given by -m and --model. An empty one is an error: an unset variable of a
  // script must not select the built-in model.
  void model(const char* help, std::string& to);
  // The same for several: MODEL..., or repeated -m.
  void models(const char* help, std::vector<std::string>& to);
  void flag(const char* names, const char* help, bool& to);
  void help_flag();  // -h and --help; every command has it
  // Declares --config FILE. Options may then also be set in that file (port = 8080) or in the environment
  // ($GIMBAL_PORT=8080). The command line comes first, then the environment. `wanted` is called after
  // parsing; if false, only the command line counts.
  void configurable(std::function<bool()> wanted = [] { return true; });
  // Lines of sections [model.NAME] of --config go to `take`; without this call they are errors.
  void model_sections(std::function<void(const ConfigEntry&, const std::string& source)> take) {
    take_section_ = std::move(take);
  }
  // The environment and the user's own file (user_config_file()) may set options, too. All commands share
  // them, so a name that only another command has is no mistake: `names` gives the options of all commands.
  void shared_settings(std::function<std::vector<std::string>()> names) { all_names_ = std::move(names); }
  void typed_only();  // the last declared option: command line only
  void text(const char* names, const char* value, const char* help, std::optional<std::string>& to);
  void text(const char* names, const char* value, const char* help, std::string& to);
  void texts(const char* names, const char* value, const char* help, std::vector<std::string>& to);
  void one_of(const char* names, const char* help, std::string& to, std::vector<std::string> allowed);
  // One word per value of an enumeration, in order.
  template <class E>
  void choice(const char* names, const char* help, E& to, std::vector<std::string> words) {
    one_of(names, help, std::move(words), [&to](size_t i) { to = E(i); });
  }

  // A whole number from `low` to `high`.
  template <class T>
  void whole(const std::string& names, const char* value, const char* help, std::optional<T>& to, T low,
             T high) {
    option(names, value, help, [&to, low, high](const std::string& s) {
      T v{};
      auto expected = read(s, low, high, v);
      if (!expected) to = v;
      return expected;
    });
  }
  // The same for a setting that has a default.
  template <class T>
  void whole(const std::string& names, const char* value, const char* help, T& to, T low, T high) {
    option(names, value, help, [&to, low, high](const std::string& s) { return read(s, low, high, to); });
  }
  // One of a family of options: a single line in --help (remark()); listed in completion and the manual.
  template <class T>
  void family_whole(const std::string& names, const char* value, const std::string& help,
                    std::optional<T>& to, T low, T high) {
    whole(names, value, help.c_str(), to, low, high);
    declared_.back().listed = Declared::InTables;
  }
  void remark(const char* names, const char* help) {
    remember(names, "", help);
    declared_.back().listed = Declared::InHelp;
  }
  // Any finite number; the caller checks its range.
  void number(const char* names, const char* value, const char* help, float& to);

  // Called for an undeclared option; may return a better error than "there is no such option".
  void explain_unknown(std::function<std::optional<Error>(const std::string& option)> why) {
    explain_unknown_ = std::move(why);
  }

  // Errors: Usage, for people. `args`: without the program and the command.
  Status parse(std::vector<std::string> args);
  bool help_wanted() const { return help_wanted_; }
  std::string help() const;

  // The long names of a section's options that were on the command line.
  std::vector<std::string> typed(const std::string& section) const;

  // Parses a value; returns a description of the expected one on failure.
  using Setter = std::function<std::optional<std::string>(const std::string&)>;
  // For users of the table: completion and the manual.
  struct Declared {
    std::string section, names, value, help;
    enum : uint8_t { Everywhere, InHelp, InTables } listed = Everywhere;
    Setter set = {};
    bool repeatable = false;
  };
  const std::string& command() const { return command_; }
  const std::string& about() const { return about_; }
  const std::vector<Declared>& declared() const { return declared_; }
  const std::vector<std::pair<std::string, std::string>>& positionals() const { return positionals_; }
  const std::vector<std::string>& examples() const { return examples_; }

 private:
  template <class T>
  static std::optional<std::string> read(const std::string& s, T low, T high, T& to) {
    T v{};
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    if (error != std::errc() || end != s.data() + s.size() || v < low || v > high)
      return format("a whole number from {} to {}", low, high);
    to = v;
    return std::nullopt;
  }
  void one_of(const char* names, const char* help, std::vector<std::string> words,
              std::function<void(size_t)> take);
  void option(const std::string& names, const std::string& value, const char* help, Setter set,
              bool repeatable = false);
  void remember(const std::string& names, const std::string& value, const char* help, Setter set = {},
                bool repeatable = false);
  size_t typed(const Declared&) const;  // how often
  Status settle();                      // from the environment, --config and the user's own file
  Status settle_by_file(const std::string& path, bool shared, std::vector<const Declared*>& settled);
  Result<bool> settle_by_environment(Declared&);
  Status settle(Declared&, const ConfigEntry&, const std::string& source);
  Error unexpected(const std::string& argument) const;
  void fail(Error e) {
    if (!error_) error_ = std::move(e);
  }
  OptionKind kind(std::string_view name) const;

  CommandLine line_;
  std::string command_, about_, section_;
  bool model_given_ = false;
  std::function<bool()> configurable_;
  std::function<void(const ConfigEntry&, const std::string&)> take_section_;
  std::function<std::vector<std::string>()> all_names_;
  std::optional<std::string> config_;
  std::vector<std::pair<std::string, std::string>> positionals_;  // name, help
  std::vector<std::string> examples_;
  std::vector<Declared> declared_;
  std::function<std::optional<Error>(const std::string&)> explain_unknown_;
  std::optional<Error> error_;  // the first one
  bool help_wanted_ = false;
};

// Parses "1,2,3" as token ids. Errors: Usage, naming `option` and the invalid piece.
Result<std::vector<int32_t>> parse_ids(const char* option, const std::string& text);

}  // namespace gimbal
