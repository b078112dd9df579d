#include "apps/arguments.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace gimbal {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace

struct Arguments::Parser {
  CLI::App app;
};

Arguments::Arguments(std::string command, std::string about)
    : parser_(std::make_unique<Parser>()), command_(std::move(command)), about_(std::move(about)) {
  parser_->app.set_help_flag();
  parser_->app.allow_extras();
  section("Options");
}
Arguments::~Arguments() = default;

void Arguments::section(std::string title) { section_ = std::move(title); }
void Arguments::example(std::string line) { examples_.push_back(std::move(line)); }
void Arguments::remember(const std::string& names, const std::string& value, const char* help) {
  declared_.push_back({section_, names, value, help});
}

void Arguments::option(const std::string& names, const std::string& value, const char* help, Setter set,
                       bool repeatable) {
  auto take = [this, names, set = std::move(set), repeatable](const CLI::results_t& given) {
    for (size_t i = repeatable ? 0 : given.size() - 1; i < given.size(); i++)
      if (auto expected = set(given[i]); expected && !error_)
        error_ = Error{Code::Usage,
                       format("{} must be {}, not {}", fmt::join(split(names, ','), "/"), *expected,
                              gimbal::quoted(given[i])),
                       ""};
    return true;
  };
  parser_->app.add_option(names, std::move(take))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  remember(names, value, help);
}

void Arguments::positional(const char* name, const char* help, std::string& to) {
  parser_->app.add_option(name, [&to](const CLI::results_t& given) { return to = given.back(), true; })
      ->expected(1);
  positionals_.push_back(name);
  positional_help_.push_back(help);
}

void Arguments::flag(const char* names, const char* help, bool& to) {
  parser_->app.add_flag_callback(names, [&to] { to = true; })->disable_flag_override();
  remember(names, "", help);
}

void Arguments::text(const char* names, const char* value, const char* help, std::optional<std::string>& to) {
  option(names, value, help, [&to](const std::string& s) { return to = s, std::nullopt; });
}

void Arguments::texts(const char* names, const char* value, const char* help, std::vector<std::string>& to) {
  option(
      names, value, help, [&to](const std::string& s) { return to.push_back(s), std::nullopt; }, true);
}

void Arguments::one_of(const char* names, const char* help, std::string& to,
                       std::vector<std::string> allowed) {
  std::string list;
  for (const std::string& a : allowed) list += (list.empty() ? "" : "|") + a;
  option(names, list, help, [&to, allowed](const std::string& s) -> std::optional<std::string> {
    if (std::find(allowed.begin(), allowed.end(), s) != allowed.end()) return to = s, std::nullopt;
    std::string expected = "one of";
    for (const std::string& a : allowed) expected += (a == allowed.front() ? " " : ", ") + a;
    return expected;
  });
}

void Arguments::number(const char* names, const char* value, const char* help, float& to) {
  option(names, value, help, [&to](const std::string& s) -> std::optional<std::string> {
    float v = 0;
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    if (error != std::errc() || end != s.data() + s.size() || !std::isfinite(v)) return "a number";
    return to = v, std::nullopt;
  });
}

Error Arguments::unexpected(const std::string& argument) const {
  const std::string help = format("`{} --help` lists what it takes", command_);
  if (argument.size() < 2 || argument[0] != '-')
    return {Code::Usage, format("{} does not expect {} here", command_, gimbal::quoted(argument)),
            "put a text with spaces into quotes; " + help};
  const std::string option = argument.substr(0, argument.find('='));
  if (explain_unknown_)
    if (auto why = explain_unknown_(option)) return *why;
  std::vector<std::string> known;
  for (const Declared& d : declared_)
    for (const std::string& name : split(d.names, ',')) known.push_back(name);
  auto similar = nearest(option, known);
  return {Code::Usage, format("{} has no option {}", command_, gimbal::quoted(argument)),
          similar ? format("did you mean {}? {}", *similar, help) : help};
}

Status Arguments::parse(std::vector<std::string> args) {
  section("Common");
  flag("-h,--help", "this text", help_wanted_);
  std::reverse(args.begin(), args.end());
  try {
    parser_->app.parse(std::move(args));
  } catch (const CLI::ParseError& e) {
    if (help_wanted_) return Done{};
    return Error{Code::Usage, e.what(), format("`{} --help` lists what it takes", command_)};
  }
  if (help_wanted_) return Done{};
  if (auto left = parser_->app.remaining(); !left.empty()) return unexpected(left[0]);
  if (error_)
    return Error{error_->code, error_->message, format("`{} --help` lists what it takes", command_)};
  return Done{};
}

std::string Arguments::help() const {
  std::string out = format("Usage: {}", command_);
  for (const std::string& p : positionals_) out += format(" [{}]", p);
  out += format(" [options]\n\n{}\n", about_);
  for (size_t i = 0; i < positionals_.size(); i++)
    out += format("\n  {:<26} {}\n", positionals_[i], positional_help_[i]);
  std::string section;
  for (const Declared& d : declared_) {
    if (d.section.empty()) continue;
    if (d.section != section) out += format("\n{}:\n", section = d.section);
    std::string left;
    for (const std::string& name : split(d.names, ',')) left += (left.empty() ? "" : ", ") + name;
    if (left.rfind("--", 0) == 0) left = "    " + left;  // in line with those that have a short name
    if (!d.value.empty()) left += " " + d.value;
    out += left.size() <= 26 ? format("  {:<26} {}\n", left, d.help)
                             : format("  {}\n  {:<26} {}\n", left, "", d.help);
  }
  for (const std::string& e : examples_)
    out += format("{}  {}\n", e == examples_.front() ? "\nExamples:\n" : "", e);
  return out;
}

Result<std::vector<int32_t>> parse_ids(const char* option, const std::string& text) {
  std::vector<int32_t> ids;
  if (text.find_first_not_of(" \t\n") == std::string::npos) return ids;
  for (std::string piece : split(text, ',')) {
    const size_t begin = piece.find_first_not_of(" \t\n"), end = piece.find_last_not_of(" \t\n");
    piece = begin == std::string::npos ? "" : piece.substr(begin, end - begin + 1);
    int32_t id = 0;
    auto [stop, error] = std::from_chars(piece.data(), piece.data() + piece.size(), id);
    if (error != std::errc() || stop != piece.data() + piece.size() || id < 0)
      return Error{
          Code::Usage,
          format("{} must be whole numbers from 0 to 2147483647 with commas between them; {} is none", option,
                 gimbal::quoted(piece)),
          format("for example: {} 1,403,407", option)};
    ids.push_back(id);
  }
  return ids;
}

}  // namespace gimbal
