#include "apps/toolkit/command_line.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

void CommandLine::option(std::string_view names, Take take) {
  items_.push_back({split(std::string(names), ','), Item::Option, SIZE_MAX, std::move(take)});
}
void CommandLine::flag(std::string_view names, Take take) {
  items_.push_back({split(std::string(names), ','), Item::Flag, SIZE_MAX, std::move(take)});
}
void CommandLine::positional(std::string_view name, size_t most, Take take) {
  items_.push_back({{std::string(name)}, Item::Positional, most, std::move(take)});
}

CommandLine::Item* CommandLine::find(std::string_view name) {
  for (Item& i : items_)
    if (std::find(i.names.begin(), i.names.end(), name) != i.names.end()) return &i;
  return nullptr;
}

const CommandLine::Values& CommandLine::given(std::string_view name) const {
  static const Values none;
  const Item* i = const_cast<CommandLine*>(this)->find(name);
  return i ? i->values : none;
}

// "-" is a file, "---" and "-5" are words, unless there is an option -5.
bool CommandLine::is_option(const std::string& word) {
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  if (dashes == 0 || dashes > 2 || dashes == word.size()) return false;
  const unsigned char first = word[dashes];
  if (dashes == 1 && first >= '0' && first <= '9') return find(word.substr(0, 2));
  return first > ' ' && first != '!';
}

void CommandLine::take_word(std::string word) {
  for (Item& i : items_)
    if (i.kind == Item::Positional && i.values.size() < i.most) return i.values.push_back(std::move(word));
  left_.push_back(std::move(word));
}

Status CommandLine::take_value(Item& i, Values& rest) {
  if (rest.empty()) {
    const auto name = std::find_if(i.names.begin(), i.names.end(),
                                   [](const std::string& n) { return n.starts_with("--"); });
    return Error{Code::Usage, format("{} needs a value", name == i.names.end() ? i.names[0] : *name), ""};
  }
  i.values.push_back(std::move(rest.back()));
  rest.pop_back();
  return Done{};
}

Status CommandLine::take_long(const std::string& word, Values& rest) {
  const size_t equals = std::min(word.find('='), word.size());
  Item* i = find(word.substr(0, equals));
  if (!i || i->kind == Item::Positional) return left_.push_back(word), Done{};
  if (i->kind == Item::Option) {
    if (equals < word.size()) rest.push_back(word.substr(equals + 1));
    return take_value(*i, rest);
  }
  const std::string value = word.substr(std::min(equals + 1, word.size()));
  if (!value.empty() && value != "true")
    return Error{Code::Usage, format("{} takes no value", i->names.back()), ""};
  i->values.push_back("true");
  return Done{};
}

Status CommandLine::take_short(const std::string& word, Values& rest) {
  Item* i = find(word.substr(0, 2));
  if (!i) return left_.push_back(word), Done{};
  const std::string more = word.substr(2);
  if (i->kind == Item::Option) {
    if (!more.empty()) rest.push_back(more);
    return take_value(*i, rest);
  }
  // No bundles: "-hf" of another program must not be "-h".
  if (!more.empty()) return left_.push_back(word), Done{};
  i->values.push_back("true");
  return Done{};
}

Status CommandLine::parse(std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());  // the next one is the last
  bool options = true;
  Status status = Done{};
  while (!words.empty() && status) {
    const std::string word = std::move(words.back());
    words.pop_back();
    if (options && word == "--") options = false;
    else if (options && is_option(word))
      status = word[1] == '-' ? take_long(word, words) : take_short(word, words);
    else take_word(word);
  }
  for (const Item& i : items_)
    if (!i.values.empty()) i.take(i.values);
  return status;
}

}  // namespace gimbal
