// Splits a command line into options with values, positional words and unknown words. Syntax as in GNU
// programs: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, -ab for two flags, "--" before words that are
// not options. Does not check values; apps/toolkit/arguments.h does.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

// Splits a text at a character, keeping empty parts: "-n,--tokens" at ','.
std::vector<std::string> split(const std::string& text, char at);

class CommandLine {
 public:
  using Values = std::vector<std::string>;
  // Receives all values of an option at once, after the last word, in the order of declaration. A flag has
  // one value per occurrence.
  using Take = std::function<void(const Values&)>;

  // `names`: "-n,--tokens".
  void option(std::string_view names, Take take);
  void flag(std::string_view names, Take take);
  // Declares at most `most` positional words; earlier declarations are filled first.
  void positional(std::string_view name, size_t most, Take take);

  // Errors: Usage, for an option without its value or a flag with one; the calls are made anyway.
  Status parse(std::vector<std::string> words);

  // The values of the option or positional of this name; empty if undeclared.
  const Values& given(std::string_view name) const;
  // Undeclared options, and excess positional words.
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
