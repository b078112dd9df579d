// gimbal COMMAND: finds the command, lets it read its options, and turns its failure into words and an exit
// code.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "apps/command.h"
#include "apps/json.h"
#include "apps/terminal.h"
#include "apps/wording.h"
#include "engine/backend_places.h"

namespace gimbal {
namespace {

struct Row {
  const char* name;
  const char* alias;
  const char* group;
  const char* help;  // one line
  MakeCommand make;
};

constexpr Row kCommands[] = {
    {"run", "", "Use a model", "generate text; without a prompt on a terminal, a conversation", make_run},
    {"bench", "", "Use a model", "measure the speed of prompts and of generation", make_bench},
    {"plan", "", "Before running it", "the memory that a model takes, exactly, without loading it",
     make_plan},
    {"explain", "", "Before running it", "the kernel that computes every step, and why", make_explain},
    {"backends", "doctor", "This machine",
     "every backend and device: usable or not, why, and what would help", make_backends},
    {"kernels", "", "This machine", "every kernel of every backend, and which of them this machine can use",
     make_kernels},
    {"verify", "", "This machine", "check every kernel of this machine's device against the exact reference",
     make_verify},
    {"models", "", "Model files", "the models found on this machine", make_models},
    {"info", "", "Model files", "what a model file contains", make_info},
    {"tokenize", "", "Model files", "text to token ids", make_tokenize},
    {"detokenize", "", "Model files", "token ids to text", make_detokenize},
    {"logits", "", "For developers", "the model's raw output for given tokens", make_logits},
    {"dequantize", "", "For developers", "raw quantized blocks to float32", make_dequantize},
};

const Row* find_command(const std::string& name) {
  for (const Row& row : kCommands)
    if (name == row.name || (*row.alias && name == row.alias)) return &row;
  return nullptr;
}

std::string overview() {
  std::string out =
      "gimbal runs language models (GGUF files) on this machine, and says what computes them and "
      "why.\n\nUsage: gimbal COMMAND [options]\n";
  const char* group = "";
  for (const Row& row : kCommands) {
    if (std::strcmp(group, row.group) != 0) out += format("\n{}:\n", group = row.group);
    out += format("  {:<18} {}\n", *row.alias ? format("{}, {}", row.name, row.alias) : row.name, row.help);
  }
  return out +
         "\n  gimbal run -p \"Once upon a time\"        a story from the model inside the program\n"
         "  gimbal run model.gguf                   a conversation with your own model\n\n"
         "`gimbal help COMMAND` lists the options of a command.\n";
}

int report(const Error& error, bool json) {
  const Error e = worded(error);
  std::string text = "error: " + printable(e.message, true) + "\n";
  if (!e.remedy.empty()) text += "  " + printable(e.remedy, true) + "\n";
  fflush(stdout);
  fwrite(text.data(), 1, text.size(), stderr);
  if (json)
    print_json({{"error", {{"code", name_of(e.code)}, {"message", e.message}, {"remedy", e.remedy}}}});
  return exit_code(e.code);
}

Error unknown_command(const std::string& word) {
  std::vector<std::string> known{"help"};
  for (const Row& row : kCommands) {
    known.push_back(row.name);
    if (*row.alias) known.push_back(row.alias);
  }
  auto similar = nearest(word, known);
  return {Code::Usage, format("there is no command '{}'", word),
          similar ? format("did you mean `gimbal {}`? `gimbal help` lists all commands", *similar)
                  : "`gimbal help` lists all commands"};
}

int dispatch(std::vector<std::string> args) {
  bool json = false;
  for (const std::string& a : args) json = json || a == "--json";
  if (args.empty()) return print(overview()), kDone;
  std::string name = args[0];
  args.erase(args.begin());
  if (name == "--version" || name == "-V" || name == "version")
    return print("gimbal " GIMBAL_VERSION "\n"), kDone;
  if (name == "help" || name == "--help" || name == "-h") {
    if (args.empty()) return print(overview()), kDone;
    name = args[0];
    args = {"--help"};
  }
  if (name == "--list-backends") name = "backends";
  const Row* row = find_command(name);
  if (!row) return report(unknown_command(name), json);

  use_backends(backend_places());
  auto command = row->make();
  Arguments arguments(format("gimbal {}", row->name),
                      format("{}{}.", char(std::toupper(row->help[0])), row->help + 1));
  command->declare(arguments);
  arguments.section("Common");
  arguments.flag("--json", "print the result as JSON", command->json);
  arguments.flag("--quiet", "no progress and no notes on stderr", command->quiet);
  if (auto ok = arguments.parse(std::move(args)); !ok) return report(ok.error(), json);
  if (arguments.help_wanted()) return print(arguments.help()), kDone;
  auto code = command->run();
  return code ? *code : report(code.error(), json);
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
  try {
    return gimbal::finish(gimbal::dispatch({argv + (argc > 0), argv + argc}));
  } catch (const std::bad_alloc&) {
    gimbal::note("error: out of memory\n  close other programs, or use a smaller model or --ctx");
    return gimbal::kOutOfMemory;
  } catch (const std::exception& e) {
    gimbal::note(gimbal::format(
        "error: internal error: {}\n  this is a bug of gimbal; please report it with the command line",
        e.what()));
    return gimbal::kFailed;
  }
}
