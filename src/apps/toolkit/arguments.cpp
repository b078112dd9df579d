#include "apps/toolkit/arguments.h"

#include <algorithm>
#include <cmath>

#include "apps/toolkit/terminal.h"
#include "apps/toolkit/words_elsewhere.h"
#include "base/text.h"

namespace gimbal {

namespace {

constexpr const char* kModelNames = "-m,--model";
constexpr size_t kMostModels = 1000, kMostPositionals = 100000;

}  // namespace

Arguments::Arguments(std::string command, std::string about)
    : command_(std::move(command)), about_(std::move(about)) {
  section("Options");
}

size_t Arguments::typed(const Declared& d) const {
  size_t times = 0;
  if (d.names == kModelNames) times = line_.given("MODEL").size();
  return times + line_.given(split(d.names, ',').back()).size();
}

std::vector<std::string> Arguments::typed(const std::string& section) const {
  std::vector<std::string> out;
  for (const Declared& d : declared_)
    if (d.section == section && d.listed != Declared::InHelp && typed(d))
      out.push_back(split(d.names, ',').back());
  return out;
}

void Arguments::section(std::string title) { section_ = std::move(title); }
void Arguments::example(std::string line) { examples_.push_back(std::move(line)); }
void Arguments::remember(const std::string& names, const std::string& value, const char* help, Setter set,
                         bool repeatable) {
  declared_.push_back({section_, names, value, help, Declared::Everywhere, std::move(set), repeatable});
}

void Arguments::option(const std::string& names, const std::string& value, const char* help, Setter set,
                       bool repeatable) {
  line_.option(names, [this, names, set, repeatable](const CommandLine::Values& given) {
    for (size_t i = repeatable ? 0 : given.size() - 1; i < given.size(); i++)
      if (auto expected = set(given[i]))
        fail({Code::Usage,
              format("{} must be {}, not {}", fmt::join(split(names, ','), "/"), *expected,
                     gimbal::quoted(given[i])),
              ""});
  });
  remember(names, value, help, std::move(set), repeatable);
}

void Arguments::positional(const char* name, const char* help, std::optional<std::string>& to) {
  line_.positional(name, 1, [&to](const CommandLine::Values& given) { to = given.back(); });
  positionals_.emplace_back(name, help);
}

void Arguments::positionals(const char* name, const char* help, std::vector<std::string>& to) {
  line_.positional(name, kMostPositionals, [&to](const CommandLine::Values& given) { to = given; });
  positionals_.emplace_back(format("{}...", name), help);
}

void Arguments::model(const char* help, std::string& to) {
  const CommandLine::Take take = [this, &to](const CommandLine::Values& given) {
    if (given.back().empty())
      fail({Code::Usage, "MODEL is empty", "write `default` for the model inside the program"});
    if (model_given_ || given.size() > 1)
      fail({Code::Usage, "there are two models", "give MODEL or --model, and one of them"});
    model_given_ = true;
    to = given.back();
  };
  line_.positional("MODEL", 1, take);
  line_.option(kModelNames, take);
  positionals_.emplace_back("MODEL", help);
  remember(kModelNames, "MODEL", "the same as MODEL", [&to](const std::string& name) {
    return to = name, name.empty() ? std::optional<std::string>("the name of a model") : std::nullopt;
  });
}

void Arguments::models(const char* help, std::vector<std::string>& to) {
  const CommandLine::Take take = [this, &to](const CommandLine::Values& given) {
    for (const std::string& name : given) {
      if (name.empty())
        fail({Code::Usage, "MODEL is empty", "write `default` for the model inside the program"});
      to.push_back(name);
    }
  };
  line_.positional("MODEL", kMostModels, take);
  line_.option(kModelNames, take);
  positionals_.emplace_back("MODEL...", help);
  const Setter set = [&to](const std::string& name) -> std::optional<std::string> {
    if (name.empty()) return "the name of a model";
    return to.push_back(name), std::nullopt;
  };
  remember(kModelNames, "MODEL", "the same as MODEL", set, true);
}

void Arguments::flag(const char* names, const char* help, bool& to) {
  line_.flag(names, [&to](const CommandLine::Values&) { to = true; });
  remember(names, "", help, [&to](const std::string& s) -> std::optional<std::string> {
    if (s != "true" && s != "false") return "true or false";
    return to = s == "true", std::nullopt;
  });
}

void Arguments::text(const char* names, const char* value, const char* help, std::optional<std::string>& to) {
  option(names, value, help, [&to](const std::string& s) { return to = s, std::nullopt; });
}

void Arguments::text(const char* names, const char* value, const char* help, std::string& to) {
  option(names, value, help, [&to](const std::string& s) { return to = s, std::nullopt; });
}

void Arguments::texts(const char* names, const char* value, const char* help, std::vector<std::string>& to) {
  option(
      names, value, help, [&to](const std::string& s) { return to.push_back(s), std::nullopt; }, true);
}

void Arguments::one_of(const char* names, const char* help, std::string& to,
                       std::vector<std::string> allowed) {
  one_of(names, help, allowed, [&to, allowed](size_t i) { to = allowed[i]; });
}

void Arguments::one_of(const char* names, const char* help, std::vector<std::string> allowed,
                       std::function<void(size_t)> take) {
  std::string list;
  for (const std::string& a : allowed) list += (list.empty() ? "" : "|") + a;
  option(names, list, help, [allowed, take](const std::string& s) -> std::optional<std::string> {
    const auto at = std::find(allowed.begin(), allowed.end(), s);
    if (at != allowed.end()) return take(size_t(at - allowed.begin())), std::nullopt;
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
    return {Code::Usage, format("unexpected argument {}", gimbal::quoted(argument)),
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

OptionKind Arguments::kind(std::string_view name) const {
  for (const Declared& d : declared_) {
    const auto names = split(d.names, ',');
    if (std::find(names.begin(), names.end(), name) != names.end())
      return d.value.empty() ? OptionKind::Flag : OptionKind::Value;
  }
  return OptionKind::None;
}

void Arguments::help_flag() {
  flag("-h,--help", "this text", help_wanted_);
  typed_only();
}

void Arguments::typed_only() { declared_.back().set = {}; }

Status Arguments::parse(std::vector<std::string> args) {
  std::vector<std::string> notes;
  const auto kind_of = [this](std::string_view name) { return kind(name); };
  if (auto ok = translate_options(args, command_, kind_of, notes); !ok) return ok;
  const bool quiet = std::find(args.begin(), args.end(), "--quiet") != args.end();
  const Status parsed = line_.parse(std::move(args));
  if (help_wanted_) return Done{};
  if (!parsed)
    return Error{Code::Usage, parsed.error().message, format("`{} --help` lists what it takes", command_)};
  if (!line_.left().empty()) return unexpected(line_.left()[0]);
  if (error_)
    return Error{
        error_->code, error_->message,
        error_->remedy.empty() ? format("`{} --help` lists what it takes", command_) : error_->remedy};
  if (!quiet)
    for (const std::string& text : notes) note(text);
  return all_names_ || (configurable_ && configurable_()) ? settle() : Done{};
}

std::string Arguments::help() const {
  std::string out = format("Usage: {}", command_);
  for (const auto& [name, text] : positionals_) out += format(" [{}]", name);
  out += format(" [options]\n\n{}\n", about_);
  for (const auto& [name, text] : positionals_) out += format("\n  {:<26} {}\n", name, text);
  std::string section;
  for (const Declared& d : declared_) {
    if (d.listed == Declared::InTables) continue;
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
      return Error{Code::Usage,
                   format("{} must be whole numbers with commas between them; {} is not one", option,
                          gimbal::quoted(piece)),
                   format("for example: {} 1,403,407", option)};
    ids.push_back(id);
  }
  return ids;
}

}  // namespace gimbal
