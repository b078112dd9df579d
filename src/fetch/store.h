// Locations of fetched models: Hugging Face's models in its own cache, in its layout (blobs by hash, a
// folder of links per commit); those of plain URLs in gimbal's cache.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fetch/address.h"

namespace gimbal {

namespace reason {
inline constexpr const char* kNotFetched = "not-fetched";  // `value`: the address of a model to fetch
}

// The location of one file, before and after the download.
struct Place {
  std::string path;  // the path to open
  std::string blob;  // the file with its bytes: the target of the link `path`, or `path` itself
  std::string lock;  // lock file of downloads and removals; the Python programs use the same one
};

// Errors of both: Failed if no environment variable gives the cache's location.
Result<Place> hub_place(const ModelAddress&, const std::string& commit, const std::string& file,
                        const std::string& blob);
Result<Place> url_place(const Url&);

// "/home/me/.cache/gimbal/models"; empty when there is no cache folder.
std::string url_models_folder();

// Creates or replaces the link to a complete blob. Errors: Failed with the system's
// reason.
Status link_blob(const Place&);
// Records the commit that a branch pointed to at the download. Errors as before.
Status note_commit(const ModelAddress&, const std::string& commit);

// Finds a fetched model by its address; all its parts must be there. Contacts no server.
// Without a quantization: the first of the default order that is there. Of a folder of safetensors its path.
// Errors: Usage (ambiguous-model).
Result<std::optional<std::string>> find_fetched(const ModelAddress&);

// A lock of the file system (flock) on a whole file. Move-only.
class FileLock {
 public:
  // nullopt if another process holds it. Creates parent folders. Errors: Failed with the system's reason.
  static Result<std::optional<FileLock>> try_lock(const std::string& path);
  FileLock(FileLock&&) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// Creates a folder and its parents. Errors: Failed with the reason and a remedy.
Status make_folder(const std::string& path);

// Deletes a model from this machine: all its parts, and cache files that no other model uses.
struct Removal {
  std::vector<std::string> files;  // links, blobs and remains of an interrupted download, in this order
  std::vector<std::string> locks;  // of the blobs
  uint64_t bytes = 0;              // freed by the removal
  std::string root;                // the cache; empty folders below it are removed, too
};

// `path`: the model's first file. Keeps blobs that other links of the cache use, and files outside the cache
// that its links lead to. For a file outside the two caches (root is empty): the file and its parts. Errors:
// Failed with the system's reason.
Result<Removal> removal_of(const std::string& path);
// Errors: Failed if one of the files is being fetched, or with the system's reason.
Status remove(const Removal&);

}  // namespace gimbal
