// gimbal completion: scripts for completion in shells, generated from the table of commands and their
// options.
#include <set>

#include "apps/commands/commands.h"
#include "apps/toolkit/terminal.h"
#include "base/text.h"

namespace gimbal {
namespace {

struct Option {
  std::vector<std::string> names;
  std::vector<std::string> values;  // of a choice
  std::string help;
  bool takes_value;
};

std::vector<Option> options_of(const CommandRow& row) {
  const DeclaredCommand d = declare(row);
  std::vector<Option> all;
  for (const Arguments::Declared& o : d.arguments->declared()) {
    if (o.listed == Arguments::Declared::InHelp) continue;
    Option option{split(o.names, ','), {}, o.help, !o.value.empty()};
    if (o.value.find('|') != std::string::npos)
      for (const std::string& v : split(o.value, '|'))
        if (v.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos) option.values.push_back(v);
    all.push_back(std::move(option));
  }
  return all;
}

std::vector<std::string> names_of(const CommandRow& row) {
  std::vector<std::string> names{row.name};
  if (*row.alias) names.push_back(row.alias);
  return names;
}

// In single quotes, as all three shells read them.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (char c : text)
    if (c == '\'') out += "'\\''";
    else out += c;
  return out + "'";
}

std::string bash() {
  std::string commands = "help --version", options, values;
  for (const CommandRow& row : all_commands()) {
    const std::string names = fmt::to_string(fmt::join(names_of(row), "|"));
    std::string words;
    for (const std::string& n : names_of(row)) commands += " " + n;
    for (const Option& o : options_of(row)) {
      for (const std::string& n : o.names) words += (words.empty() ? "" : " ") + n;
      if (o.values.empty()) continue;
      for (const std::string& command : names_of(row))
        values += format("    {}) words={} ;;\n",
                         fmt::join(
                             [&] {
                               std::vector<std::string> all;
                               for (const std::string& n : o.names)
                                 all.push_back(in_quotes(command + " " + n));
                               return all;
                             }(),
                             "|"),
                         in_quotes(fmt::to_string(fmt::join(o.values, " "))));
    }
    options += format("    {}) words={} ;;\n", names, in_quotes(words));
  }
  return format(R"(# bash completion of gimbal, made by `gimbal completion bash`
_gimbal() {{
  local words='' current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if ((COMP_CWORD == 1)) || {{ ((COMP_CWORD == 2)) && [[ $command == help ]]; }}; then
    COMPREPLY=($(compgen -W {} -- "$current"))
    return
  fi
  case "$command $before" in
{}  esac
  if [[ -z $words && $current == -* ]]; then
    case $command in
{}    esac
  fi
  [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _gimbal gimbal
)",
                in_quotes(commands), values, options);
}

// Within _arguments a colon and brackets end a part.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (char c : text)
    out += (c == ':' || c == '[' || c == ']' || c == '\\') ? std::string("\\") + c : std::string(1, c);
  return out;
}

std::string zsh() {
  std::string commands, cases;
  for (const CommandRow& row : all_commands()) {
    for (const std::string& n : names_of(row))
      commands += "    " + in_quotes(n + ":" + zsh_text(row.help)) + "\n";
    std::string specs;
    for (const Option& o : options_of(row))
      for (const std::string& n : o.names)
        specs +=
            format(" \\\n        {}",
                   in_quotes(format("*{}[{}]{}", n, zsh_text(o.help),
                                    !o.takes_value     ? ""
                                    : o.values.empty() ? ":value:_files"
                                                       : format(":value:({})", fmt::join(o.values, " ")))));
    cases += format("    {})\n      _arguments{} \\\n        '*:file:_files' ;;\n",
                    fmt::join(names_of(row), "|"), specs);
  }
  return format(R"(#compdef gimbal
# zsh completion of gimbal, made by `gimbal completion zsh`
_gimbal() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_gimbal "$@"
)",
                commands, cases);
}

std::string fish_quotes(std::string text) {
  for (size_t at = 0; (at = text.find_first_of("\\'", at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return "'" + text + "'";
}

std::string fish() {
  std::string out = "# fish completion of gimbal, made by `gimbal completion fish`\n";
  for (const CommandRow& row : all_commands()) {
    for (const std::string& n : names_of(row))
      out += format("complete -c gimbal -f -n __fish_use_subcommand -a {} -d {}\n", n, fish_quotes(row.help));
    for (const Option& o : options_of(row)) {
      std::string names, rest = o.takes_value ? " -r" : "";
      for (const std::string& n : o.names)
        names += n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
      if (!o.values.empty())
        rest = format(" -x -a {}", fish_quotes(fmt::to_string(fmt::join(o.values, " "))));
      out += format("complete -c gimbal -n '__fish_seen_subcommand_from {}'{}{} -d {}\n",
                    fmt::join(names_of(row), " "), names, rest, fish_quotes(o.help));
    }
  }
  return out;
}

class Completion final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("SHELL", "bash, zsh or fish", shell_);
    a.example("source <(gimbal completion bash)");
    a.example("gimbal completion fish > ~/.config/fish/completions/gimbal.fish");
  }
  Result<int> run() override {
    const std::string shell = shell_.value_or("");
    if (shell == "bash") print(bash());
    else if (shell == "zsh") print(zsh());
    else if (shell == "fish") print(fish());
    else
      return Error{Code::Usage,
                   shell.empty() ? "no shell is named"
                                 : format("there is no completion for {}", gimbal::quoted(shell)),
                   "write gimbal completion bash, zsh or fish"};
    return kDone;
  }

 private:
  std::optional<std::string> shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion() { return std::make_unique<Completion>(); }

}  // namespace gimbal
