// gimbal pull: fetches a model by its address, and first reports its size and memory needs.
#include <algorithm>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"

namespace gimbal {
namespace {

class PullCommand final : public Command {
 public:
  PullCommand() { json_lines = true; }

  void declare(Arguments& a) override {
    a.positional(
        "NAME",
        "hf.co/OWNER/REPO[:QUANT] of Hugging Face, one file of it (hf.co/OWNER/REPO/FILE.gguf), or the "
        "URL of a .gguf file",
        name_);
    a.flag("--dry-run", "show what would be downloaded and whether it fits, without downloading", dry_run_);
    a.whole("--connections", "N", "parts of a file fetched at once (default 4)", connections_, 1, 16);
    a.text("--sha256", "HEX", "the hash that the file must have; Hugging Face supplies its own", sha256_);
    a.example("gimbal pull hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF");
    a.example("gimbal pull hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0");
    a.example("HF_TOKEN=hf_... gimbal pull hf.co/OWNER/PRIVATE");
  }

  Result<int> run() override {
    if (!name_ || name_->empty())
      return Error{Code::Usage, "no model is named", "write gimbal pull hf.co/OWNER/REPO"};
    if (!is_address(*name_)) return already_here();
    PullConsole console(json    ? PullConsole::To::Programs
                        : quiet ? PullConsole::To::Nobody
                                : PullConsole::To::People);
    auto pull = Pull::resolve(*name_, {connections_.value_or(4), sha256_.value_or("")}, console);
    if (!pull) return pull.error();
    print_source(**pull, console);
    if (auto ok = print_fit(**pull, console); !ok) return ok.error();
    if (dry_run_) return kDone;
    const bool here = (*pull)->missing() == 0;
    auto path = (*pull)->fetch();
    if (!path) return path.error();
    console.tell("done", {{"name", (*pull)->address().name()},
                          {"path", *path},
                          {"bytes", (*pull)->bytes()},
                          {"fetched", !here}});
    if (here && !json && !quiet) note("all of it was here already");
    if (!json) print(*path + "\n");
    return kDone;
  }

 private:
  Result<int> already_here() {
    auto found = find_model(*name_);
    if (!found) {
      Error e = found.error();
      if (e.code == Code::NotFound) {
        const bool hub =
            std::count(name_->begin(), name_->end(), '/') == 1 && name_->find(".gguf") == name_->npos;
        e.message =
            format("there is no model {} on this machine, and it is not an address", gimbal::quoted(*name_));
        e.reason = "";
        e.remedy = hub ? format("write `gimbal pull hf.co/{}` for Hugging Face", *name_)
                       : "write hf.co/OWNER/REPO or a URL; models of Ollama are found once `ollama pull` has "
                         "loaded them";
      }
      return e;
    }
    if (json)
      print_json({{"event", "done"}, {"name", found->name}, {"path", found->path}, {"fetched", false}}, true);
    else print((found->path.empty() ? "inside the program" : found->path) + "\n");
    return kDone;
  }

  void print_source(const Pull& pull, PullConsole& console) const {
    Json files = Json::array();
    for (const PullFile& f : pull.files())
      files.push_back({{"name", f.name},
                       {"bytes", f.bytes},
                       {"sha256", f.sha256.empty() ? Json() : Json(f.sha256)},
                       {"path", f.place.path},
                       {"here", f.here}});
    console.tell("resolved", {{"name", pull.address().name()},
                              {"commit", pull.commit().empty() ? Json() : Json(pull.commit())},
                              {"bytes", pull.bytes()},
                              {"missing", pull.missing()},
                              {"files", std::move(files)}});
    if (json || quiet) return;
    note(format("{}: {}{}, {}", printable(pull.address().name()), printable(pull.files()[0].name),
                pull.files().size() > 1 ? format(" and {} more parts", pull.files().size() - 1) : "",
                human_bytes(pull.bytes())));
  }

  Status print_fit(const Pull& pull, PullConsole& console) const {
    auto header = header_of(pull, {});
    if (!header && header.error().code != Code::Unsupported) return header.error();
    if (!header) {
      const Error e = worded(header.error());
      if (!json && !quiet) note("note: " + printable(e.message));
      console.tell("plan", {{"fits", nullptr}, {"reason", e.message}});
      return Done{};
    }
    auto options = engine_options({});
    if (!options) return options.error();
    FitReport o = fit_report(*header, std::move(*options));
    if (!json && !quiet) note(o.text);
    console.tell("plan", std::move(o.json));
    return Done{};
  }

  std::optional<std::string> name_, sha256_;
  std::optional<int> connections_;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Command> make_pull() { return std::make_unique<PullCommand>(); }

}  // namespace gimbal
