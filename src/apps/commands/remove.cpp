// gimbal rm: takes a model off this machine.
#include <cstdio>

#include "apps/commands/command.h"
#include "apps/toolkit/terminal.h"
#include "base/bytes.h"
#include "base/json.h"
#include "engine/find_model.h"
#include "fetch/store.h"

namespace gimbal {
namespace {

class Remove final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("NAME", "a name that `gimbal list` shows, an address, or a file", name_);
    a.flag("--yes", "do not ask for confirmation", yes_);
    a.flag("--force", "also delete a file outside of the caches, in a folder of your own", force_);
    a.example("gimbal rm hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0");
  }

  Result<int> run() override {
    if (!name_ || name_->empty())
      return Error{Code::Usage, "no model is named", "`gimbal list` shows those that are here"};
    auto found = find_model(*name_);
    if (!found) return found.error();
    if (auto ok = check(*found); !ok) return ok.error();
    auto what = removal_of(found->path);
    if (!what) return what.error();
    if (what->root.empty() && !force_)
      return Error{
          Code::Usage,
          format("'{}' was not put there by gimbal or a program of Hugging Face", printable(found->path)),
          "--force deletes it anyway"};
    if (auto go_on = asked(*found, *what); !go_on || !*go_on)
      return go_on ? Result<int>(kDone) : go_on.error();
    if (auto ok = gimbal::remove(*what); !ok) return ok.error();
    if (json)
      print_json(
          {{"name", found->name}, {"path", found->path}, {"bytes", what->bytes}, {"files", what->files}});
    else if (!quiet)
      print(format("removed {}, {} are free\n", printable(found->name), human_bytes(what->bytes)));
    return kDone;
  }

 private:
  Status check(const FoundModel& m) const {
    if (m.path.empty()) return Error{Code::Usage, "the model inside the program cannot be removed", ""};
    // Several Ollama names may share a blob, and Ollama's list would still contain the removed
    // model.
    if (m.source == "Ollama")
      return Error{Code::Usage,
                   format("{} belongs to Ollama, which keeps a record of its files", gimbal::quoted(m.name)),
                   format("write `ollama rm {}`", m.name)};
    return Done{};
  }

  // Whether it is to be done.
  Result<bool> asked(const FoundModel& m, const Removal& what) const {
    if (yes_) return true;
    if (!stdin_is_terminal() || !stderr_is_terminal())
      return Error{Code::Usage, "stdin is not a terminal, so you cannot be asked for confirmation",
                   "--yes confirms it"};
    fputs(format("remove {} ({}, {})? [y/N] ", printable(m.name), human_bytes(what.bytes), printable(m.path))
              .c_str(),
          stderr);
    char answer[16] = "";
    const bool yes = fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
    if (!yes) note("nothing was removed");
    return yes;
  }

  std::optional<std::string> name_;
  bool yes_ = false, force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_remove() { return std::make_unique<Remove>(); }

}  // namespace gimbal
