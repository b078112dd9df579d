// gimbal COMMAND: finds the command, lets it read its options, and turns its failure into words and an exit
// code.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "apps/commands/commands.h"
#include "apps/toolkit/build_info.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "engine/backend_places.h"

namespace gimbal {
namespace {

std::string overview() {
  std::string out =
      "gimbal runs language models (GGUF files) on this machine, and shows what computes them and "
      "why.\n\nUsage: gimbal COMMAND [options]\n";
  const char* group = "";
  std::string absent;
  for (const CommandRow& row : all_commands()) {
    if (row.make()->absent_feature()) {
      absent += format("{}{}", absent.empty() ? "\nNot in this build: " : ", ", row.name);
      continue;
    }
    if (std::strcmp(group, row.group) != 0) out += format("\n{}:\n", group = row.group);
    const std::string names = *row.alias ? format("{}, {}", row.name, row.alias) : row.name;
    out += format("  {:<18} {}\n", names.size() > 18 ? names + "\n" + std::string(20, ' ') : names, row.help);
  }
  if (!absent.empty()) out += absent + "\n";
  return out +
         "\n  gimbal run -p \"Once upon a time\"        a story from the model inside the program\n"
         "  gimbal run model.gguf                   a conversation with your own model\n\n"
         "`gimbal help COMMAND` lists the options of a command. An option that is not typed is taken from "
         "the\n"
         "environment (GIMBAL_CTX=8192), else from ~/.config/gimbal/config (a line: ctx = 8192).\n";
}

// `lines`: the command's output has JSON on each line.
int report(const Error& error, bool json, bool lines = false) {
  const Error e = worded(error);
  std::string text = "error: " + printable(e.message, true) + "\n";
  if (!e.remedy.empty()) text += "  " + printable(e.remedy, true) + "\n";
  flush_output();
  fwrite(text.data(), 1, text.size(), stderr);
  if (json)
    print_json({{"error", {{"code", name_of(e.code)}, {"message", e.message}, {"remedy", e.remedy}}}}, lines);
  return e.reason == std::string_view(reason::kCancelled) ? int(kInterrupted) : exit_code(e.code);
}

// Hints for commands of other programs, and for a model in the place of a command.
std::string hint(const std::string& word) {
  for (const auto& [theirs, ours] : {std::pair("ls", "gimbal list"),
                                     {"download", "gimbal pull"},
                                     {"get", "gimbal pull"},
                                     {"remove", "gimbal rm"},
                                     {"show", "gimbal info MODEL"},
                                     {"probe", "gimbal plan MODEL"},
                                     {"chat", "gimbal run MODEL"},
                                     {"load", "gimbal run MODEL"},
                                     {"server", "gimbal serve MODEL"}})
    if (word == theirs) return format("here that is `{}`", ours);
  for (const auto& [theirs, said] :
       {std::pair("ps", "`curl http://127.0.0.1:8080/api/ps` asks a server which models it has loaded"),
        {"stop", "Ctrl-C or SIGTERM ends `gimbal serve`; --keep-alive SECONDS unloads idle models"},
        {"unload", "`gimbal serve --keep-alive SECONDS` unloads idle models"},
        {"push", "gimbal publishes no models"},
        {"cp", "a model is a file: `gimbal list --json` has its path"},
        {"import", "put the file into a folder of $GIMBAL_MODELS, or name its path"},
        {"launch", "start `gimbal serve MODEL`, and give the program the address http://127.0.0.1:8080/v1"},
        {"init", "`gimbal serve MODEL` needs no files of settings; docs/serving.md has examples of clients"}})
    if (word == theirs) return said;
  if (word == "create") return "`gimbal convert` and `gimbal quantize` make model files";
  if (word.ends_with(".gguf") || word.ends_with(".GGUF") || word.find('/') != std::string::npos)
    return format("to run a model, write `gimbal run {}`", word);
  if (word.starts_with('-')) return format("name the command first: `gimbal run {} ...`", word);
  return "";
}

// "-m FILE ..." without a command, as programs take it that do one thing.
const char* command_for(const std::vector<std::string>& args) {
  const std::string name = args[0].substr(0, args[0].find('='));
  for (const char* of_model :
       {"-m", "--model", "--model-path", "-hf", "-hfr", "--hf-repo", "-mu", "--model-url"})
    if (name == of_model)
      return std::any_of(args.begin(), args.end(),
                         [](const std::string& a) { return a == "--port" || a.starts_with("--port="); })
                 ? "serve"
                 : "run";
  return nullptr;
}

Error unknown_command(const std::string& word) {
  std::vector<std::string> known{"help"};
  for (const CommandRow& row : all_commands()) {
    known.push_back(row.name);
    if (*row.alias) known.push_back(row.alias);
  }
  std::string help = hint(word);
  const auto similar = help.empty() ? nearest(word, known) : std::nullopt;
  if (similar) help = format("did you mean `gimbal {}`?", *similar);
  return {Code::Usage, format("there is no command {}", gimbal::quoted(word)),
          help + (help.empty() ? "" : "; ") + "`gimbal help` lists all commands"};
}

int dispatch(std::vector<std::string> args) {
  bool json = false;
  for (const std::string& a : args) json = json || a == "--json";
  if (args.empty()) return print(overview()), kDone;
  std::string name = args[0];
  if (const char* command = command_for(args)) name = command;
  else args.erase(args.begin());
  if (name == "--version" || name == "-V" || name == "version")
    return print("gimbal " GIMBAL_VERSION "\n"), kDone;
  if (name == "--build-info") {
    const Backends all(backend_places().folders);
    std::vector<std::string> there = all.names();
    std::erase_if(there, [&](const std::string& b) { return !all.source(b).present; });
    return print(build_info("gimbal " GIMBAL_VERSION, there)), kDone;
  }
  if (name == "help" || name == "--help" || name == "-h") {
    if (args.empty()) return print(overview()), kDone;
    if (args.size() > 1)
      return report({Code::Usage, format("unexpected argument {}", gimbal::quoted(args[1])),
                     "`gimbal help COMMAND` takes one command"},
                    json);
    name = args[0];
    args = {"--help"};
  }
  for (const auto& [theirs, ours] : {std::pair("--list-backends", "backends"),
                                     {"generate", "run"},
                                     {"discover", "models"},
                                     {"gpu-info", "backends"}})
    if (name == theirs) name = ours;
  const CommandRow* row = find_command(name);
  if (!row) return report(unknown_command(name), json);

  use_backends(backend_places());
  auto [command, arguments] = declare(*row);
  if (const char* feature = command->absent_feature())
    return report(absent_feature_error(format("`gimbal {}`", row->name), feature), json);
  if (auto ok = arguments->parse(std::move(args)); !ok) return report(ok.error(), json);
  if (arguments->help_wanted()) return print(arguments->help()), kDone;
  auto code = command->run();
  return code ? *code : report(code.error(), json, command->json_lines);
}

int finish(int code) {
  if (flush_output()) return code;
  if (!reader_gone()) note(format("error: cannot write the output: {}", std::strerror(errno)));
  return code ? code : int(kFailed);
}

}  // namespace
}  // namespace gimbal

int main(int argc, char** argv) {
  // A reader that goes away shows up as a failed write, which ends the command in order.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the same for a file that may not grow (ulimit -f)
  try {
    return gimbal::finish(gimbal::dispatch({argv + (argc > 0), argv + argc}));
  } catch (const std::bad_alloc&) {
    gimbal::note("error: out of memory\n  close other programs, or use a smaller model or a shorter context");
    return gimbal::kOutOfMemory;
  } catch (const std::exception& e) {
    gimbal::note(gimbal::format(
        "error: internal error: {}\n  this is a bug of gimbal; please report it with the command line",
        e.what()));
    return gimbal::kFailed;
  }
}
