// gimbal find-libraries: C++ inference libraries on this machine, by the variables of the dual-backend
// roadmap.
#include "apps/commands/command.h"
#include "apps/toolkit/library_places.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"

namespace gimbal {
namespace {

std::string text_of(const LibrarySearch& s, bool explain) {
  std::string out;
  if (s.found.empty() && !s.failure)
    out += "No C++ inference library was found: gimbal's own engine computes everything.\n";
  Table found("llll");
  for (const FoundLibrary& l : s.found) found.row({l.kind, summary(l.verdict), printable(l.path), l.tier});
  if (!s.found.empty()) out += "Libraries found\n" + found.text("  ");
  if (!explain) return out;
  Table places("lll");
  for (const SearchedPlace& p : s.searched) places.row({p.tier, printable(p.path), printable(p.outcome)});
  return out + (out.empty() ? "" : "\n") + "Searched\n" + places.text("  ");
}

Json json_of(const LibrarySearch& s) {
  Json found = Json::array(), searched = Json::array();
  for (const FoundLibrary& l : s.found)
    found.push_back({{"kind", l.kind},
                     {"path", l.path},
                     {"tier", l.tier},
                     {"summary", summary(l.verdict)},
                     {"gpus", l.verdict.gpus},
                     {"build_id", l.inspection.images.front().build_id}});
  for (const SearchedPlace& p : s.searched)
    searched.push_back({{"tier", p.tier}, {"path", p.path}, {"outcome", p.outcome}});
  return {{"found", found}, {"searched", searched}, {"notes", s.notes}};
}

class FindLibraries final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("PATH", "a library, its folder, or a checkout with a build tree; default: search", path_);
    a.flag("--explain", "also list every place that was searched, and why a file was refused", explain_);
  }

  Result<int> run() override {
    const LibrarySearch s = path_ ? find_libraries_at(*path_) : find_libraries(library_places());
    if (!quiet)
      for (const std::string& n : s.notes) note("note: " + n);
    if (s.failure && !explain_) return *s.failure;
    if (json && !s.failure) print_json(json_of(s));
    else if (!json) print(text_of(s, explain_));
    if (s.failure) return *s.failure;
    return kDone;
  }

 private:
  std::optional<std::string> path_;
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Command> make_find_libraries() { return std::make_unique<FindLibraries>(); }

}  // namespace gimbal
