// gimbal manual: the manual page gimbal(1), made from the table of commands and their options.
#include <cctype>
#include <cstring>

#include "apps/commands/commands.h"
#include "apps/toolkit/terminal.h"

namespace gimbal {
namespace {

// Text as roff prints it: no escape of its own, a hyphen that can be copied, no request at a line's
// beginning.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if (c == '\'') out += "\\(aq";
    else if (c == '`') out += "\\(ga";
    else if (c == '~') out += "\\(ti";
    else if (c == '^') out += "\\(ha";
    else out += c;
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string sentence(std::string_view text) {
  std::string out(text);
  if (!out.empty()) out[0] = char(std::toupper(static_cast<unsigned char>(out[0])));
  return roff(out) + ".";
}

std::string option(const Arguments::Declared& o) {
  std::string names;
  for (size_t at = 0; at <= o.names.size();) {
    const size_t end = std::min(o.names.find(',', at), o.names.size());
    names += (names.empty() ? "" : ", ") + format("\\fB{}\\fR", roff(o.names.substr(at, end - at)));
    at = end + 1;
  }
  if (!o.value.empty()) names += format(" \\fI{}\\fR", roff(o.value));
  return format(".TP\n{}\n{}\n", names, sentence(o.help));
}

std::string page() {
  std::string out = format(
      ".TH GIMBAL 1 \"\" \"gimbal {}\" \"User Commands\"\n.SH NAME\ngimbal \\- run language models on this "
      "machine\n.SH SYNOPSIS\n.B gimbal\n.I COMMAND\n[\\fIMODEL\\fR] [\\fIoptions\\fR]\n.SH "
      "DESCRIPTION\ngimbal runs language models (GGUF files) on this machine, and shows what computes them "
      "and why.\nMODEL is a file, a name that \\fBgimbal list\\fR shows, an address (hf.co/OWNER/REPO:QUANT "
      "or the URL of a file, which is fetched), or \\fBdefault\\fR: the model inside the program.\n.SH "
      "COMMANDS\n",
      roff(GIMBAL_VERSION));
  for (const CommandRow& row : all_commands()) {
    const DeclaredCommand d = declare(row);
    out += format(".SS gimbal {}{}\n{}\n", row.name, *row.alias ? format(", gimbal {}", row.alias) : "",
                  sentence(row.help));
    for (const auto& [name, help] : d.arguments->positionals())
      out += format(".TP\n\\fI{}\\fR\n{}\n", name, sentence(help));
    for (const Arguments::Declared& o : d.arguments->declared())
      if (o.listed != Arguments::Declared::InHelp) out += option(o);
    for (const std::string& e : d.arguments->examples()) out += format(".PP\nExample: \\fB{}\\fR\n", roff(e));
  }
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : {std::pair(kDone, "done"),
                                      {kFailed, "failed while running, or something named does not exist"},
                                      {kUsage, "the command line is wrong"},
                                      {kBadModel, "the model file is damaged or not supported"},
                                      {kNoBackend, "no device satisfies the request"},
                                      {kOutOfMemory, "not enough memory"},
                                      {kInterrupted, "interrupted with Ctrl-C"}})
    out += format(".TP\n{}\n{}\n", int(code), sentence(meaning));
  out += ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] :
       {std::pair("GIMBAL_MODELS", "folders to look for models in, with colons between"),
        {"SHIMMY_MODEL_PATHS", "the same, with semicolons between"},
        {"GIMBAL_BACKEND_PATH", "folders to look for backend plugins in"},
        {"HF_TOKEN", "the token for Hugging Face; else the file that `hf auth login` writes"},
        {"HF_HOME, HF_HUB_CACHE", "where models of Hugging Face are kept, for its own programs, too"},
        {"HF_ENDPOINT", "another site with the API of Hugging Face"},
        {"https_proxy, http_proxy, no_proxy", "how the network is reached"},
        {"XDG_CACHE_HOME, HOME", "where measurements and verification results are kept"},
        {"NO_COLOR", "no colours"}})
    out += format(".TP\n.B {}\n{}\n", roff(name), sentence(meaning));
  return out;
}

class Manual final : public Command {
 public:
  void declare(Arguments& a) override { a.example("gimbal manual | man -l -"); }
  Result<int> run() override { return print(page()), kDone; }
};

}  // namespace

std::unique_ptr<Command> make_manual() { return std::make_unique<Manual>(); }

}  // namespace gimbal
