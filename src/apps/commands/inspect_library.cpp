// gimbal inspect-library (analyze-library): the contents of a library, read from its file and never run.
#include <algorithm>

#include "apps/commands/command.h"
#include "apps/reports/verdict_reports.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"

namespace gimbal {
namespace {

std::vector<std::string> family_keys() {
  std::vector<std::string> keys{"gpu"};
  for (size_t f = 0; f < kSymbolFamilies; f++) keys.push_back(info(SymbolFamily(f)).key);
  return keys;
}

// Whether the library has code of a family, or calls it. "gpu": of any GPU.
bool has(const LibraryVerdict& v, const std::string& key) {
  if (key == "gpu") return !v.gpus.empty();
  for (size_t f = 0; f < kSymbolFamilies; f++)
    if (key == info(SymbolFamily(f)).key) return v.families[f].found();
  return false;
}

class InspectLibrary final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("FILE", "shared library, program, object or static archive: ELF, Mach-O, PE or COFF", file_);
    a.flag("--symbols", "also list every exported and undefined symbol", view_.all_symbols);
    a.texts("--require", "NAME",
            "fail unless the library has it: gpu, or a family of symbols such as llama, cuda (repeatable)",
            required_);
    a.texts("--forbid", "NAME", "fail if the library has it (repeatable)", forbidden_);
    a.example("gimbal inspect-library build/bin/libllama.so");
    a.example("gimbal inspect-library --forbid gpu libgimbal-backend-cpu.so");
  }

  Result<int> run() override {
    if (!file_)
      return Error{Code::Usage, "inspect-library needs a FILE",
                   "for example: gimbal inspect-library libllama.so"};
    const std::vector<std::string> keys = family_keys();
    for (const auto* list : {&required_, &forbidden_})
      for (const std::string& key : *list)
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
          return Error{Code::Usage,
                       format("{}: there is no family {}", list == &required_ ? "--require" : "--forbid",
                              gimbal::quoted(key)),
                       format("there are {}", fmt::join(keys, ", "))};
    auto found = inspect_library(*file_);
    if (!found) return explained(found.error());
    const LibraryVerdict verdict = judge(*found);
    const std::vector<std::string> broken = broken_demands(verdict);
    if (json) {
      Json j = inspection_json(*found, verdict, view_);
      j["broken_demands"] = broken;
      print_json(j);
      return broken.empty() ? kDone : kFailed;
    }
    print(inspection_text(*found, verdict, view_));
    if (broken.empty()) return kDone;
    return Error{
        Code::Failed,
        format("{}: {} (found: {})", gimbal::quoted(*file_), fmt::join(broken, "; "), summary(verdict)), ""};
  }

 private:
  Error explained(Error e) const {
    if (e.code == Code::NotFound) e.message = format("Library not found: {}", printable(*file_));
    return e;
  }

  std::vector<std::string> broken_demands(const LibraryVerdict& v) const {
    std::vector<std::string> broken;
    for (const std::string& key : required_)
      if (!has(v, key)) broken.push_back("it has no " + key);
    for (const std::string& key : forbidden_)
      if (has(v, key)) broken.push_back("it has " + key);
    return broken;
  }

  std::optional<std::string> file_;
  InspectionView view_;
  std::vector<std::string> required_, forbidden_;
};

}  // namespace

std::unique_ptr<Command> make_inspect_library() { return std::make_unique<InspectLibrary>(); }

}  // namespace gimbal
