#include "discovery/library_validation.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "discovery/probe.h"
#include "inspection/image_reader.h"
#include "inspection/instructions.h"
#include "inspection/library_search.h"
#include "inspection/loaded_libraries.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

#ifdef __APPLE__
constexpr const char* kFormat = "Mach-O";
#else
constexpr const char* kFormat = "ELF";
#endif
constexpr const char* kLoaded = "loaded";

bool has(const NameList& sorted, std::string_view name) {
  for (size_t low = 0, high = sorted.kept(); low < high;) {
    const size_t middle = (low + high) / 2;
    if (sorted[middle] == name) return true;
    sorted[middle] < name ? low = middle + 1 : high = middle;
  }
  return false;
}

class Validator {
 public:
  Validator(const std::string& path, const LibraryDemand& demand) : demand_(demand) { out_.path = path; }

  LibraryValidation validate() {
    auto found = inspect_library(out_.path);
    if (!found) return unreadable(found.error());
    inspection_ = std::move(*found);
    verdict_ = judge(inspection_);
    const BinaryImage* image = image_for_this_machine();
    if (image && demand_.interface) functions(*image);
    if (!demand_.gpu.empty()) gpu();
    if (image) instructions(*image);
    if (image && demand_.load) load(*image);
    return std::move(out_);
  }

 private:
  void fail(const char* check, std::string message, std::string expected, std::string found,
            std::string remedy) {
    out_.failures.push_back(
        {check, std::move(message), std::move(expected), std::move(found), std::move(remedy)});
  }

  LibraryValidation unreadable(const Error& e) {
    if (e.code == Code::NotFound)
      fail("file", format("Library not found: {}", escaped(out_.path)), "a file", "none",
           "build or install it, or give another path");
    else if (e.code == Code::Malformed)
      fail("format", e.message, format("a shared library ({})", kFormat), "something else",
           "give a libllama or libbitnet of this system");
    else fail("file", e.message, "a readable file", "an error", "check its permissions");
    return std::move(out_);
  }

  const BinaryImage* image_for_this_machine() {
    std::string machines, formats;
    const BinaryImage* image = nullptr;
    const std::string wanted = this_machine();
    for (const BinaryImage& i : inspection_.images) {
      machines += (machines.empty() ? "" : ", ") + i.machine;
      formats += (formats.empty() ? "" : ", ") + format("{} {}", i.format, i.type);
      if (i.format == kFormat && i.type == "shared library" &&
          (wanted.empty() || i.machine.starts_with(wanted)))
        image = &i;
    }
    if (image) return image;
    const BinaryImage& first = inspection_.images.front();
    if (first.format != kFormat || first.type != "shared library")
      fail("format", "it is no shared library of this system", format("{} shared library", kFormat), formats,
           "give a shared library that was built for this system");
    if (!wanted.empty() && machines.find(wanted) == std::string::npos)
      fail("machine", "it is for another machine", wanted, machines, "build it for this machine");
    return nullptr;
  }

  void functions(const BinaryImage& image) {
    std::vector<std::string> missing;
    for (const auto& names : demand_.interface->functions)
      if (std::none_of(names.begin(), names.end(), [&](auto& n) { return has(image.exported, n); }))
        missing.push_back(names.front());
    if (!missing.empty())
      fail("functions", format("required symbols are missing: {}", fmt::join(missing, ", ")),
           format("the functions of {}", demand_.interface->name), summary(verdict_),
           "give the library itself, not a part of it, in a version with its C interface");
    if (demand_.interface->generations.empty()) return;
    for (const auto& g : demand_.interface->generations)
      if (has(image.exported, g.exports)) return void(out_.generation = g.name);
    if (missing.empty())
      fail("generation", "its interface is of no known generation",
           format("{} to {}", demand_.interface->generations.back().name,
                  demand_.interface->generations.front().name),
           "an unknown one", "use a release that is listed in the documentation");
  }

  // ggml's code for GPUs is in libraries beside libllama.
  void gpu() {
    std::set<std::string> found(verdict_.gpus.begin(), verdict_.gpus.end());
    for (const FoundLibrary& l : find_libraries_at(fs::path(out_.path).parent_path().string()).found)
      found.insert(l.verdict.gpus.begin(), l.verdict.gpus.end());
    if (!found.count(demand_.gpu))
      fail("gpu", format("it has no code for {}", demand_.gpu), demand_.gpu,
           found.empty() ? "CPU only" : fmt::to_string(fmt::join(found, ", ")),
           format("use a build with {}, or compute on the CPU", demand_.gpu));
  }

  // A library with code for several CPUs chooses among them, so this is no failure.
  void instructions(const BinaryImage& image) {
    std::string flags = demand_.cpu_flags;
    for (const std::string& line : lines_of("/proc/cpuinfo"))
      if (flags.empty() && (line.starts_with("flags") || line.starts_with("Features"))) flags = line;
    if (!flags.empty()) flags = " " + flags + " ";
    std::vector<std::string> lacking;
    for (const auto& family : image.cpu.families)
      for (size_t f = 0; f < size_t(InstructionFamily::Count); f++)
        if (!family.doubtful && !flags.empty() && family.name == name_of(InstructionFamily(f)) &&
            flags.find(format(" {} ", flag_of(InstructionFamily(f)))) == std::string::npos)
          lacking.push_back(family.name);
    if (!lacking.empty())
      out_.warnings.push_back(
          format("it contains instructions that this CPU lacks ({}): it works only if it chooses its code "
                 "when it runs",
                 fmt::join(lacking, ", ")));
  }

  void load(const BinaryImage& image) {
    std::error_code e;
    const fs::path real = fs::canonical(out_.path, e);
    if (e) return;
    const std::string path = real.string();
    const ProbeTask task{"library",
                         [path, needed = image.needed]() -> Result<LibraryPtr> {
                           std::string problems = load_problems(path, needed);
                           return Error{Code::Failed, std::move(problems), "", kLoaded};
                         },
                         ""};
    ProbeSettings settings;
    settings.limit = demand_.limit;
    const auto answers = probe({task}, settings);
    const BackendReport& r = *answers.front();
    if (r.reason != kLoaded) return load_failed(r.message);
    for (size_t at = 0; at < r.message.size();) {
      const size_t end = std::min(r.message.find(kBetweenProblems, at), r.message.size());
      const std::string line = r.message.substr(at, end - at);
      at = end + kBetweenProblems.size();
      if (line.starts_with("needed "))
        fail("needed", format("it needs {}, which is not installed", line.substr(7)), line.substr(7), "none",
             is_driver(line.substr(7)) ? "install the driver of the device, or use a build for the CPU"
                                       : "install it, or put it into the library's folder");
      else if (line.starts_with("load ")) load_failed(line.substr(5));
    }
  }

  void load_failed(const std::string& why) {
    fail("load", format("Failed to load library: {}", why), "a library that loads", "an error of the loader",
         "use a build for this system");
  }

  static bool is_driver(const std::string& library) {
    const SymbolFamilies of = families_of_library(library);
    for (size_t f = 0; f < kSymbolFamilies; f++)
      if (of[f] && info(SymbolFamily(f)).gpu) return true;
    return false;
  }

  const LibraryDemand& demand_;
  LibraryValidation out_;
  Inspection inspection_;
  LibraryVerdict verdict_;
};

}  // namespace

LibraryValidation validate_library(const std::string& path, const LibraryDemand& demand) {
  return Validator(path, demand).validate();
}

Error error_of(const LibraryValidation& v) {
  std::vector<std::string> lines, remedies;
  bool absent = false;
  for (const LibraryFailure& f : v.failures) {
    lines.push_back(format("{} (expected {}, found {})", f.message, f.expected, f.found));
    if (std::find(remedies.begin(), remedies.end(), f.remedy) == remedies.end()) remedies.push_back(f.remedy);
    absent |= f.check == "file";
  }
  return {absent ? Code::NotFound : Code::Unsupported,
          format("{} cannot be used: {}", gimbal::quoted(v.path), fmt::join(lines, "; ")),
          fmt::to_string(fmt::join(remedies, "; "))};
}

}  // namespace gimbal
