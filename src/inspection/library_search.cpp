#include "inspection/library_search.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/format.h"
#include "base/text.h"
#include "inspection/image_reader.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKinds[] = {"bitnet", "llama", "ggml"};
constexpr int kDeepest = 6;               // folders below a build tree
constexpr size_t kMostEntries = 300'000;  // of all folders

// Where CMake puts the libraries of bitnet.cpp and llama.cpp, below the checkout. The first is the place that
// the roadmap names.
constexpr const char* kBuildFolders[] = {"build/3rdparty/llama.cpp/src",
                                         "build/3rdparty/llama.cpp/ggml/src",
                                         "build/3rdparty/llama.cpp",
                                         "build/src",
                                         "build/ggml/src",
                                         "build/bin",
                                         "build/bin/Release",
                                         "build/lib",
                                         "build",
                                         "lib",
                                         "lib64",
                                         "bin",
                                         ""};

size_t rank_of(const std::string& kind) {
  return size_t(std::find(std::begin(kKinds), std::end(kKinds), kind) - std::begin(kKinds));
}

bool is_static(const std::string& path) { return path.ends_with(".a"); }

// bitnet, llama, ggml; shared libraries before static ones; "libggml.so" before "libggml-base.so".
auto order_of(const FoundLibrary& l) {
  const std::string name = l.path.substr(l.path.rfind('/') + 1);
  return std::tuple(rank_of(l.kind), is_static(l.path), name.find(l.kind + "-") != std::string::npos,
                    l.place);
}

SymbolFamily family_of(const std::string& kind) {
  return kind == "bitnet" ? SymbolFamily::Bitnet : kind == "llama" ? SymbolFamily::Llama : SymbolFamily::Ggml;
}

// Empty: usable here.
std::string refusal(const FoundLibrary& l) {
  const std::string wanted = this_machine();
  std::string machines;
  bool fits = wanted.empty();
  for (const BinaryImage& i : l.inspection.images) {
    fits |= i.machine.starts_with(wanted) || i.machine == "unknown";
    machines += (machines.empty() ? "" : ", ") + i.machine;
  }
  if (!fits) return format("is for another machine: expected {}, found {}", wanted, machines);
  const FamilyFinding& own = l.verdict.of(family_of(l.kind));
  if (!own.exported.count())
    return format("is named {}, but exports no function of it: found {}", l.kind, summary(l.verdict));
  return "";
}

class Search {
 public:
  explicit Search(LibraryPlaces p) : places_(std::move(p)) {}

  LibrarySearch at(const std::string& path) {
    constexpr const char* kTier = "given";
    std::error_code e;
    const fs::path p(path);
    if (!fs::exists(p, e)) {
      note(kTier, path, problem(path));
      out_.failure = Error{Code::NotFound, format("Library not found: {}", escaped(path)),
                           "give a library, its folder, or a checkout with a build tree"};
      return std::move(out_);
    }
    if (fs::is_directory(p, e)) {
      folder(kTier, path);
      if (!done()) tree(kTier, path);
    } else {
      const std::string kind = library_kind(p.filename().string());
      file(kTier, p, kind.empty() ? "llama" : kind);
    }
    if (done()) return std::move(out_);
    out_.failure =
        Error{Code::NotFound, format("no usable library is at {}{}", gimbal::quoted(path), refusals()),
              "expected libllama, libbitnet or libggml for this machine"};
    return std::move(out_);
  }

  LibrarySearch search() {
    const bool old_name = places_.root.empty() && !places_.old_root.empty();
    const std::string& root = old_name ? places_.old_root : places_.root;
    if (!places_.old_root.empty())
      out_.notes.push_back(format("BITNET_CPP_PATH is deprecated{}: use BITNET_CPP_DIR",
                                  old_name ? "" : " and ignored, as BITNET_CPP_DIR is set"));
    if (!places_.library_folder.empty())
      return named("BITNET_CROSSVAL_LIBDIR", places_.library_folder, false);
    if (!root.empty()) return named(old_name ? "BITNET_CPP_PATH" : "BITNET_CPP_DIR", root, true);
    if (!places_.cached_root.empty()) tree("cache", places_.cached_root);
    if (!done()) tier("beside the program", places_.beside);
    if (!done()) tier("system", places_.system);
    return std::move(out_);
  }

 private:
  bool done() {
    std::sort(out_.found.begin(), out_.found.end(),
              [](const FoundLibrary& a, const FoundLibrary& b) { return order_of(a) < order_of(b); });
    return !out_.found.empty();
  }

  LibrarySearch named(const char* variable, const std::string& path, bool with_build) {
    if (with_build) tree(variable, path);
    else folder(variable, path);
    if (done()) return std::move(out_);
    std::string why;
    for (const SearchedPlace& s : out_.searched)
      if (why.empty() && s.outcome.find("is ") == 0)
        why = format("; {} {}", gimbal::quoted(s.path), s.outcome);
    const std::string expected =
        path + (with_build ? "/build/3rdparty/llama.cpp/src/libllama.so" : "/libllama.so");
    out_.failure = Error{Code::NotFound,
                         format("{} is {}, and no usable library is there. Expected library at {}{}",
                                variable, gimbal::quoted(path), escaped(expected), refusals()),
                         format("build it there, or unset {}", variable)};
    return std::move(out_);
  }

  // "; '/path/libllama.so' is truncated ...", of the first file that was refused.
  std::string refusals() const {
    for (const SearchedPlace& s : out_.searched)
      if (s.outcome.starts_with("is ") && !s.outcome.starts_with("is the same"))
        return format("; {} {}", gimbal::quoted(s.path), s.outcome);
    return "";
  }

  void tier(const char* name, const std::vector<std::string>& folders) {
    for (const std::string& f : folders) folder(name, f);
  }

  // The usual places first, then the whole build tree, so that an unusual layout is found, too.
  void tree(const char* tier, const std::string& root) {
    std::error_code e;
    if (!fs::is_directory(root, e)) return note(tier, root, problem(root));
    for (const char* part : kBuildFolders)
      if (const fs::path p = fs::path(root) / part; fs::is_directory(p, e)) folder(tier, p.string());
    if (!done()) descend(tier, fs::path(root) / "build", 0);
  }

  void descend(const char* tier, const fs::path& at, int depth) {
    std::error_code e;
    if (depth > kDeepest || !fs::is_directory(at, e)) return;
    // Through links a folder is reached on many ways, and their number grows with each level.
    if (!descended_.insert(fs::canonical(at, e).string()).second || descended_.size() > kMostFolders) return;
    if (depth) folder(tier, at.string());
    for (const fs::path& entry : entries(at))
      if (fs::is_directory(entry, e)) descend(tier, entry, depth + 1);
      else if (e == std::errc::too_many_symbolic_link_levels)
        note(tier, entry.string(), "is a loop of links");
  }

  // Sorted, so that the result does not depend on the file system.
  std::vector<fs::path> entries(const fs::path& at) {
    std::vector<fs::path> all;
    std::error_code e;
    for (fs::directory_iterator i(at, e), end; !e && i != end && entries_ < kMostEntries;
         i.increment(e), entries_++)
      all.push_back(i->path());
    std::sort(all.begin(), all.end());
    return all;
  }

  std::string problem(const std::string& path) const {
    std::error_code e;
    const fs::file_status s = fs::status(path, e);
    if (e == std::errc::too_many_symbolic_link_levels) return "is a loop of links";
    return s.type() == fs::file_type::not_found ? "no such folder" : e ? e.message() : "is no folder";
  }

  void folder(const char* tier, const std::string& path) {
    std::error_code e;
    const fs::path real = fs::canonical(path, e);
    if (e || !fs::is_directory(real, e)) return note(tier, path, problem(path));
    if (!seen_.insert(real.string()).second) return;  // through a link, or named twice
    if (seen_.size() > kMostFolders) {
      if (seen_.size() == kMostFolders + 1)
        note(tier, path, format("not searched: {} folders were", kMostFolders));
      return;
    }
    const size_t before = out_.searched.size();
    for (const fs::path& entry : entries(real))
      if (const std::string kind = library_kind(entry.filename().string()); !kind.empty())
        file(tier, entry, kind);
    if (out_.searched.size() == before) note(tier, path, "no library in it");
  }

  void file(const char* tier, const fs::path& path, const std::string& kind) {
    std::error_code e;
    const fs::path real = fs::canonical(path, e);
    if (e == std::errc::too_many_symbolic_link_levels) return note(tier, path.string(), "is a loop of links");
    if (e) return note(tier, path.string(), format("is a link that leads nowhere: {}", e.message()));
    if (!files_.insert(real.string()).second)
      return note(tier, path.string(), format("is the same as {}", real.string()));
    if (files_.size() > kMostLibraries) return note(tier, path.string(), "not read: too many libraries");
    auto inspection = inspect_library(real.string());
    if (!inspection) return note(tier, path.string(), predicate(inspection.error().message));
    FoundLibrary l{real.string(), kind, tier, out_.found.size(), std::move(*inspection), {}};
    l.verdict = judge(l.inspection);
    if (const std::string why = refusal(l); !why.empty()) return note(tier, path.string(), why);
    note(tier, path.string(), "found");
    out_.found.push_back(std::move(l));
  }

  // "is truncated ..." of "'/path/libllama.so' is truncated ...".
  static std::string predicate(const std::string& message) {
    const size_t at = message.find("' ");
    return at == std::string::npos ? message : message.substr(at + 2);
  }

  void note(const char* tier, const std::string& path, std::string outcome) {
    out_.searched.push_back({tier, path, std::move(outcome)});
  }

  const LibraryPlaces places_;
  LibrarySearch out_;
  std::set<std::string> seen_, files_, descended_;
  size_t entries_ = 0;
};

}  // namespace

const FoundLibrary* LibrarySearch::of(const std::string& kind) const {
  for (const FoundLibrary& l : found)
    if (l.kind == kind) return &l;
  return nullptr;
}

std::string library_kind(const std::string& file_name) {
  std::string_view name = file_name;
  if (name.starts_with("lib")) name.remove_prefix(3);
  for (const char* kind : kKinds) {
    if (!name.starts_with(kind)) continue;
    const std::string_view rest = name.substr(std::string_view(kind).size());
    const size_t so = rest.find(".so");
    const bool versioned = so != std::string_view::npos &&
                           rest.substr(so + 3).find_first_not_of(".0123456789") == std::string_view::npos;
    // ggml is several libraries; those beside llama are tools: "libllama-common".
    const bool part = std::string_view(kind) == "ggml" && rest.starts_with('-');
    if (!rest.starts_with('.') && !part) continue;
    if (versioned || rest.ends_with(".dylib") || rest.ends_with(".dll") || rest.ends_with(".a")) return kind;
  }
  return "";
}

LibrarySearch find_libraries(const LibraryPlaces& places) { return Search(places).search(); }

LibrarySearch find_libraries_at(const std::string& path) { return Search({}).at(path); }

}  // namespace gimbal
