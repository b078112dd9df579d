// The options of one command: declared once, read from the command line, and listed by --help. Numbers are
// checked against their range here, so that every mistake is answered in the same words.
#pragma once
#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/shared/command_line.h"
#include "apps/shared/config_file.h"
#include "base/format.h"
#include "base/result.h"
#include "base/text.h"

namespace gimbal {

class Arguments {
 public:
  // `command`: as in "gimbal run"; `about`: one or two lines for --help.
  Arguments(std::string command, std::string about);
  Arguments(const Arguments&) = delete;  // what was declared points here

  // Values are written by parse() and must live until then. `names`: "-n,--tokens". `value`: the placeholder
  // in --help.
  void section(std::string title);  // of the options declared from here on
  void example(std::string line);
  void positional(const char* name, const char* help, std::optional<std::string>& to);
  // The positional MODEL, which -m and --model give, too. An empty one is an error: a variable of a script
  // that is not set must not name the model inside the program.
  void model(const char* help, std::string& to);
  // The same for several: MODEL..., and -m as often.
  void models(const char* help, std::vector<std::string>& to);
  void flag(const char* names, const char* help, bool& to);
  void help_flag();  // -h and --help, which every command has
  // --config FILE, and every option also from that file and from the environment: port = 8080,
  // $GIMBAL_PORT=8080. What is typed comes first, then the environment. `wanted`, when given, is asked after
  // the command line was read; false: only what was typed counts.
  void configurable(std::function<bool()> wanted = [] { return true; });
  void typed_only();  // the last one that was declared
  void text(const char* names, const char* value, const char* help, std::optional<std::string>& to);
  void text(const char* names, const char* value, const char* help, std::string& to);
  void texts(const char* names, const char* value, const char* help, std::vector<std::string>& to);
  void one_of(const char* names, const char* help, std::string& to, std::vector<std::string> allowed);
  // One word for each value of an enumeration, in their order.
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
  // One of a family that --help tells about in a single line, remark(): completion and the manual list each.
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
  // Any finite number; its range is the business of whoever uses it.
  void number(const char* names, const char* value, const char* help, float& to);

  // Asked about an option that was not declared; may know better than "there is no such option".
  void explain_unknown(std::function<std::optional<Error>(const std::string& option)> why) {
    explain_unknown_ = std::move(why);
  }

  // Errors: Usage, for people. `args` without the program and the command.
  Status parse(std::vector<std::string> args);
  bool help_wanted() const { return help_wanted_; }
  std::string help() const;

  // The options of a section that were typed, by their long names.
  std::vector<std::string> typed(const std::string& section) const;

  // Takes the text; answers what was expected when it does not fit.
  using Setter = std::function<std::optional<std::string>(const std::string&)>;
  // For what is made of the table: completion and the manual.
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
  Status settle();                      // what was not typed
  Result<bool> settle_by_environment(Declared&);
  Status settle(Declared&, const ConfigEntry&, const std::string& source);
  Error unexpected(const std::string& argument) const;
  void fail(Error e) {
    if (!error_) error_ = std::move(e);
  }
  void translate(std::vector<std::string>& args) const;

  CommandLine line_;
  std::string command_, about_, section_;
  bool model_given_ = false;
  std::function<bool()> configurable_;
  std::optional<std::string> config_;
  std::vector<std::pair<std::string, std::string>> positionals_;  // name, help
  std::vector<std::string> examples_;
  std::vector<Declared> declared_;
  std::function<std::optional<Error>(const std::string&)> explain_unknown_;
  std::optional<Error> error_;  // the first one
  bool help_wanted_ = false;
};

// "1,2,3" as token ids. Errors: Usage, naming `option` and the piece that is no id.
Result<std::vector<int32_t>> parse_ids(const char* option, const std::string& text);

}  // namespace gimbal
