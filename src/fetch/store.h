// Where fetched models lie: those of Hugging Face in its own cache, as its programs lay it out (blobs by
// hash, a folder of links for each commit), those of plain URLs in gimbal's.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fetch/address.h"

namespace gimbal {

namespace reason {
inline constexpr const char* kNotFetched = "not-fetched";  // `value` is an address whose model is not here
}

// One file, before and after it is fetched.
struct Place {
  std::string path;  // by which it is opened
  std::string blob;  // where its bytes are: a file of its own that `path` links to, or `path`
  std::string lock;  // locked by whoever fetches or removes it; the Python programs use the same file
};

// Errors of both: Failed when no variable says where the cache is.
Result<Place> hub_place(const ModelAddress&, const std::string& commit, const std::string& file,
                        const std::string& blob);
Result<Place> url_place(const Url&);

// "/home/me/.cache/gimbal/models"; empty when there is no cache folder.
std::string url_models_folder();

// Makes the link of a blob that is there, whole; replaces another one. Errors: Failed with the system's
// reason.
Status link_blob(const Place&);
// The commit that a branch was at when it was last fetched. Errors as before.
Status note_commit(const ModelAddress&, const std::string& commit);

// The path of a model that is on this machine already, by its address; all of its parts are. Nothing is asked
// of any server. Where no quantization is named, the first of the default order that is here. Errors: Usage
// (ambiguous-model).
Result<std::optional<std::string>> find_fetched(const ModelAddress&);

// Whole files under a lock of the file system (flock). Move-only.
class FileLock {
 public:
  // Nothing when somebody else has it. Makes the folders above. Errors: Failed with the system's reason.
  static Result<std::optional<FileLock>> try_lock(const std::string& path);
  FileLock(FileLock&&) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// Makes a folder and those above it. Errors: Failed with the reason and what to do.
Status make_folder(const std::string& path);

}  // namespace gimbal
