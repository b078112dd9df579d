// gimbal validate-library: whether a C++ inference library can be used, with all failures at once.
#include "apps/commands/command.h"
#include "apps/toolkit/library_places.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "discovery/library_validation.h"

namespace gimbal {
namespace {

Json json_of(const LibraryValidation& v, const LibraryInterface& i) {
  Json failures = Json::array();
  for (const LibraryFailure& f : v.failures)
    failures.push_back({{"check", f.check},
                        {"message", f.message},
                        {"expected", f.expected},
                        {"found", f.found},
                        {"remedy", f.remedy}});
  return {{"path", v.path},
          {"interface", i.name},
          {"generation", v.generation.empty() ? Json() : Json(v.generation)},
          {"usable", v.usable()},
          {"failures", failures},
          {"warnings", v.warnings}};
}

class ValidateLibrary final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("FILE", "the library; default: those that `gimbal find-libraries` finds", file_);
    a.text("--gpu", "NAME", "demand code for this GPU backend in it or beside it: CUDA, HIP, Vulkan, ...",
           demand_.gpu);
    a.choice("--interface", "functions that it must have; auto: by its name", interface_,
             {"auto", "llama", "bitnet"});
    a.flag("--no-load", "read its file only; otherwise a child process loads it", no_load_);
  }

  Result<int> run() override {
    demand_.load = !no_load_;
    if (file_) return report(*file_, library_kind(file_->substr(file_->rfind('/') + 1)), true);
    const LibrarySearch s = find_libraries(library_places());
    if (!quiet)
      for (const std::string& n : s.notes) note("note: " + n);
    if (s.failure) return *s.failure;
    Result<int> worst = kDone;
    for (const char* kind : {"bitnet", "llama"})
      if (const FoundLibrary* l = s.of(kind)) {
        auto done = report(l->path, kind, l->tier.starts_with("BITNET_"));
        if (!done) worst = done;
      }
    if (json) print_json({{"libraries", validated_}});
    else if (validated_.empty())
      print("No C++ inference library was found: gimbal's own engine computes everything.\n");
    return worst;
  }

 private:
  enum class Wanted : uint8_t { Auto, Llama, Bitnet };

  // `demanded`: by a path or a variable. Such a request fails; others fall back.
  Result<int> report(const std::string& path, const std::string& kind, bool demanded) {
    const bool bitnet = interface_ == Wanted::Bitnet || (interface_ == Wanted::Auto && kind == "bitnet");
    demand_.interface = bitnet ? &bitnet_interface() : &llama_interface();
    const LibraryValidation v = validate_library(path, demand_);
    validated_.push_back(json_of(v, *demand_.interface));
    if (json && file_) print_json({{"libraries", validated_}});
    if (!quiet)
      for (const std::string& w : v.warnings) note(format("note: {}: {}", printable(path), w));
    if (v.usable()) {
      if (!json)
        print(format("FFI library validated: {} ({}{})\n", printable(path), demand_.interface->name,
                     v.generation.empty() ? "" : ", interface of " + v.generation));
      return kDone;
    }
    const Error e = error_of(v);
    if (demanded) return json ? Result<int>(int(exit_code(e.code))) : Result<int>(e);
    note("WARNING: FFI validation failed: " + printable(e.message));
    note("Falling back to native implementation");
    return kDone;
  }

  std::optional<std::string> file_;
  LibraryDemand demand_;
  Wanted interface_ = Wanted::Auto;
  bool no_load_ = false;
  Json validated_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> make_validate_library() { return std::make_unique<ValidateLibrary>(); }

}  // namespace gimbal
