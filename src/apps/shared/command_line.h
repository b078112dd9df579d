// The words of a command line as options with their values, positional words, and what is neither. The
// customs are those of GNU programs: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, -ab for two flags, "--"
// before words that are no options. It judges no value; apps/shared/arguments.h does.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

// The parts of a text between these characters, empty ones too: "-n,--tokens" at ','.
std::vector<std::string> split(const std::string& text, char at);

class CommandLine {
 public:
  using Values = std::vector<std::string>;
  // Told all values of an option at once, after the last word was read, in the order of declaration. A flag
  // has one for each time that it was typed.
  using Take = std::function<void(const Values&)>;

  // `names`: "-n,--tokens".
  void option(std::string_view names, Take take);
  void flag(std::string_view names, Take take);
  // Words that are no options, at most so many; what is declared first is filled first.
  void positional(std::string_view name, size_t most, Take take);

  // Errors: Usage, for an option without its value or a flag with one; the calls are made all the same.
  Status parse(std::vector<std::string> words);

  // The values of the option or positional of this name; none where there is no such.
  const Values& given(std::string_view name) const;
  // Options that were not declared, and words beyond the positional ones.
  const Values& left() const { return left_; }

 private:
  struct Item {
    std::vector<std::string> names;
    enum : uint8_t { Option, Flag, Positional } kind;
    size_t most;
    Take take;
    Values values = {};
  };
  Item* find(std::string_view name);
  bool is_option(const std::string& word);
  void take_word(std::string word);
  Status take_long(const std::string& word, Values& rest);
  Status take_short(const std::string& word, Values& rest);
  Status take_value(Item&, Values& rest);

  std::vector<Item> items_;
  Values left_;
};

}  // namespace gimbal
