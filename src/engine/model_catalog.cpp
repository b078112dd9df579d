#include "engine/model_catalog.h"

#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/folders.h"
#include "base/format.h"
#include "base/json.h"
#include "fetch/store.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 6;         // folders below a place
constexpr int kMaxEntries = 20000;  // entries of a place
constexpr size_t kMaxModels = 2000;

// Ignoring case.
bool ends_with(const std::string& text, const char* end) {
  const size_t n = std::strlen(end);
  return text.size() >= n && strcasecmp(text.c_str() + text.size() - n, end) == 0;
}

// A split model is named by its first part.
bool is_later_part(const std::string& stem) {
  const size_t of = stem.rfind("-of-");
  return of != std::string::npos && of >= 6 && stem[of - 6] == '-' && stem.substr(of - 5, 5) != "00001" &&
         stem.find_first_not_of("0123456789", of - 5) == of;
}

class Search {
 public:
  Catalog catalog;

  void add(std::string name, const char* source, const fs::path& path) {
    std::error_code e;
    const fs::path real = fs::canonical(path, e);
    if (e || !fs::is_regular_file(real, e) || !seen_.insert(real.string()).second) return;
    if (catalog.entries.size() >= kMaxModels) {
      catalog.complete = false;
      return;
    }
    const auto bytes = fs::file_size(real, e);
    catalog.entries.push_back({std::move(name), source, path.string(), e ? 0 : uint64_t(bytes)});
  }

  // A folder as Hugging Face has it, with its weights: an index without them is a download that is not
  // complete.
  void add_folder(std::string name, const char* source, const fs::path& path) {
    std::error_code e;
    const fs::path real = fs::canonical(path, e);
    uint64_t bytes = 0;
    for (auto at = fs::directory_iterator(path, e); !e && at != fs::directory_iterator(); at.increment(e)) {
      std::error_code gone;
      if (ends_with(at->path().filename().string(), ".safetensors")) bytes += fs::file_size(at->path(), gone);
    }
    if (e || !bytes || !seen_.insert(real.string()).second) return;
    if (catalog.entries.size() >= kMaxModels) catalog.complete = false;
    else catalog.entries.push_back({std::move(name), source, path.string(), bytes});
  }

  // Every *.gguf and every folder of Hugging Face's under `place`, named by `name(path below the place)`.
  // `named`: a user expects it to be there.
  template <class F>
  void folder(const fs::path& place, const char* source, int deepest, F name, bool named = false) {
    std::error_code e;
    if (!fs::is_directory(place, e)) {
      if (named)
        catalog.skipped.push_back(format("'{}': {}", place.string(), e ? e.message() : "it is not a folder"));
      return;
    }
    if (!readable(place)) return;
    catalog.places.push_back(place.string());
    search(place, source, deepest, name);
  }

  // Ollama keeps a manifest per name and tag, which names the blob of the weights.
  void ollama(const fs::path& place) {
    const fs::path manifests = place / "manifests";
    std::error_code e;
    if (!fs::is_directory(manifests, e)) return;
    catalog.places.push_back(place.string());
    int looked_at = 0;
    for (auto at =
             fs::recursive_directory_iterator(manifests, fs::directory_options::skip_permission_denied, e);
         !e && at != fs::recursive_directory_iterator() && ++looked_at < kMaxEntries; at.increment(e)) {
      if (at.depth() >= kDeepest) at.disable_recursion_pending();
      std::error_code ignored;
      if (!at->is_regular_file(ignored) || at->file_size(ignored) > (1 << 20)) continue;
      auto text = read_file(at->path().string());
      if (!text) continue;
      const Json manifest = parse_json(*text);
      if (!manifest.is_object() || !manifest.contains("layers") || !manifest["layers"].is_array()) continue;
      for (const Json& layer : manifest["layers"]) {
        if (!layer.is_object() || layer.value("mediaType", Json()) != "application/vnd.ollama.image.model")
          continue;
        const Json digest = layer.value("digest", Json());
        std::string blob = digest.is_string() ? digest.get<std::string>() : "";
        std::replace(blob.begin(), blob.end(), ':', '-');
        if (blob.empty() || blob.find('/') != std::string::npos) continue;
        add(ollama_name(at->path().lexically_relative(manifests)), "Ollama", place / "blobs" / blob);
      }
    }
  }

 private:
  bool readable(const fs::path& folder) {
    if (access(folder.c_str(), R_OK | X_OK) == 0) return true;
    catalog.skipped.push_back(format("'{}': {}", folder.string(), std::strerror(errno)));
    return false;
  }

  template <class F>
  void search(const fs::path& place, const char* source, int deepest, F name) {
    std::error_code e;
    int looked_at = 0;
    for (auto at = fs::recursive_directory_iterator(place, fs::directory_options::skip_permission_denied, e);
         !e && at != fs::recursive_directory_iterator(); at.increment(e)) {
      if (++looked_at > kMaxEntries) {
        catalog.complete = false;
        return;
      }
      if (at.depth() >= deepest) at.disable_recursion_pending();
      std::error_code gone;
      if (at->is_directory(gone) && !at->is_symlink(gone) && at.depth() < deepest) {
        if (!readable(at->path())) at.disable_recursion_pending();
        continue;
      }
      const fs::path& p = at->path();
      if (p.filename() == "config.json" && p.parent_path() != place) {
        // Named like a file: its name has no ending to lose.
        add_folder(name(p.parent_path().lexically_relative(place).string() + ".gguf"), source,
                   p.parent_path());
        continue;
      }
      if (!ends_with(p.filename().string(), ".gguf") || is_later_part(p.stem().string())) continue;
      add(name(p.lexically_relative(place)), source, p);
    }
  }

  // registry.ollama.ai/library/llama3/8b is llama3:8b; other hosts and owners are named.
  static std::string ollama_name(const fs::path& manifest) {
    std::vector<std::string> parts;
    for (const auto& p : manifest) parts.push_back(p.string());
    if (parts.size() > 1 && parts[0] == "registry.ollama.ai") parts.erase(parts.begin());
    if (parts.size() > 2 && parts[0] == "library") parts.erase(parts.begin());
    std::string name;
    for (size_t i = 0; i < parts.size(); i++)
      name += format("{}{}", i == 0 ? "" : i + 1 == parts.size() ? ":" : "/", parts[i]);
    return name;
  }

  std::set<std::string> seen_;
};

std::string stem(const fs::path& p) { return p.stem().string(); }

// models--ORG--NAME/snapshots/REVISION/FILE.gguf is ORG/NAME/FILE, and the folder REVISION is ORG/NAME.
std::string hugging_face_name(const fs::path& p) {
  const std::string repository = p.begin()->string();
  if (repository.rfind("models--", 0) != 0) return stem(p);
  std::string name;
  for (size_t at = 8; at < repository.size(); at++) {
    const bool separator = repository.compare(at, 2, "--") == 0;
    name += separator ? '/' : repository[at];
    at += separator;
  }
  return p.parent_path().filename() == "snapshots" ? name : format("{}/{}", name, stem(p));
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

std::vector<const CatalogEntry*> named(const Catalog& catalog, const std::string& name) {
  std::vector<const CatalogEntry*> found;
  for (bool whole : {true, false}) {
    for (const CatalogEntry& e : catalog.entries)
      if (strcasecmp((whole ? e.name : last_part(e.name)).c_str(), name.c_str()) == 0) found.push_back(&e);
    if (!found.empty()) return found;
  }
  for (const CatalogEntry& e : catalog.entries)
    if (strcasecmp(e.name.c_str(), (name + ":latest").c_str()) == 0 ||
        strcasecmp(e.name.substr(0, e.name.rfind('/')).c_str(), name.c_str()) == 0)
      found.push_back(&e);
  return found;
}

Catalog find_models() {
  Search s;
  std::error_code e;
  s.folder(fs::current_path(e), "this folder", 0, stem);
  for (const auto& [variable, between] : {std::pair("GIMBAL_MODELS", ':'), {"SHIMMY_MODEL_PATHS", ';'}}) {
    const std::string places = environment_variable(variable);
    for (size_t begin = 0; begin < places.size();) {
      const size_t end = std::min(places.find(between, begin), places.size());
      if (end > begin) s.folder(places.substr(begin, end - begin), variable, kDeepest, stem, true);
      begin = end + 1;
    }
  }
  const fs::path home = environment_variable("HOME");
  if (const std::string hub = hub_cache_folder(); !hub.empty())
    s.folder(hub, "Hugging Face", kDeepest, hugging_face_name);
  if (const std::string own = url_models_folder(); !own.empty())
    s.folder(own, "gimbal", kDeepest,
             [](const fs::path& p) { return p.parent_path().string() + "/" + stem(p); });
  if (const std::string ollama = environment_variable("OLLAMA_MODELS"); !ollama.empty()) s.ollama(ollama);
  else if (!home.empty()) s.ollama(home / ".ollama/models");
  s.ollama("/usr/share/ollama/.ollama/models");
  if (!home.empty()) {
    s.folder(home / ".lmstudio/models", "LM Studio", kDeepest, stem);
    s.folder(home / ".cache/lm-studio/models", "LM Studio", kDeepest, stem);
  }
  std::sort(s.catalog.entries.begin(), s.catalog.entries.end(),
            [](const CatalogEntry& a, const CatalogEntry& b) {
              return std::tie(a.name, a.path) < std::tie(b.name, b.path);
            });
  return std::move(s.catalog);
}

}  // namespace gimbal
