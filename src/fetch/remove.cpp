#include "fetch/store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/folders.h"
#include "base/format.h"
#include "base/text.h"
#include "fetch/part_file.h"
#include "files/gguf.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& folder) {
  if (folder.empty()) return false;
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// However a variable of the environment names it: absolute, and without "..". Empty stays empty.
std::string plain(const std::string& folder) {
  std::error_code e;
  std::string path = folder.empty() ? "" : fs::absolute(folder, e).lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// All links of a repository that lead to the blob.
std::vector<std::string> links_to(const fs::path& snapshots, const fs::path& blob) {
  std::vector<std::string> all;
  std::error_code e, gone;
  for (auto at = fs::recursive_directory_iterator(snapshots, e);
       !e && at != fs::recursive_directory_iterator(); at.increment(e))
    if (at->is_symlink(gone) && fs::weakly_canonical(at->path(), gone) == blob)
      all.push_back(at->path().string());
  return all;
}

void add_blob(Removal& r, const fs::path& blob) {
  const auto add = [&](const std::string& path) {
    std::error_code e;
    const auto bytes = fs::file_size(path, e);
    if (e) return;
    r.bytes += bytes;
    r.files.push_back(path);
  };
  add(blob.string());
  const std::string part = PartFile::path_of(blob.string());
  add(part), add(part + ".json");
}

// Folders that are empty now, up to the cache's.
void tidy(fs::path folder, const fs::path& root) {
  while (is_below(folder, root) && folder != root && ::rmdir(folder.c_str()) == 0)
    folder = folder.parent_path();
}

// Branches whose commit has no files any more.
void forget_commits(const fs::path& repository) {
  std::error_code e;
  if (fs::exists(repository / "snapshots", e)) return;
  fs::remove_all(repository / "refs", e);
  for (const char* folder : {"refs", "blobs", ""}) ::rmdir((repository / folder).c_str());
}

}  // namespace

Result<Removal> removal_of(const std::string& path) {
  Removal r;
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return Error{Code::Usage, format("'{}' is a folder, and only files are removed", escaped(path)),
                 "delete the folder yourself"};
  const auto split = split_name(path);
  std::vector<std::string> parts{path};
  for (uint32_t n = 2; split && n <= split->count; n++) parts.push_back(split->path(n));
  std::error_code e;
  const fs::path absolute = fs::absolute(path, e).lexically_normal();
  const std::string hub_cache = plain(hub_cache_folder());
  for (const std::string& root : {hub_cache, plain(url_models_folder())})
    if (is_below(absolute, root)) r.root = root;
  const bool hub = !r.root.empty() && r.root == hub_cache;
  for (const std::string& part : parts) {
    if (!hub) {
      add_blob(r, part);
      continue;
    }
    const fs::path here = fs::absolute(part, e).lexically_normal();
    const fs::path repository = fs::path(r.root) / *here.lexically_relative(r.root).begin();
    const fs::path blob = fs::weakly_canonical(here, e);
    if (!fs::is_symlink(here, e)) {  // a cache on a file system without links
      add_blob(r, here);
      continue;
    }
    r.files.push_back(here.string());
    const auto links = links_to(repository / "snapshots", blob);
    if (std::any_of(links.begin(), links.end(), [&](const std::string& l) { return l != here; })) continue;
    if (!is_below(blob, fs::weakly_canonical(r.root, e))) continue;  // somebody's own file
    add_blob(r, blob);
    r.locks.push_back(
        format("{}/.locks/{}/{}.lock", r.root, repository.filename().string(), blob.filename().string()));
  }
  return r;
}

Status remove(const Removal& r) {
  std::vector<FileLock> held;
  for (const std::string& path : r.locks) {
    auto lock = FileLock::try_lock(path);
    if (!lock) return lock.error();
    if (!*lock)
      return Error{Code::Failed, format("another program is fetching the file of '{}'", escaped(path)),
                   "wait until it has finished, or stop it"};
    held.push_back(std::move(**lock));
  }
  for (const std::string& path : r.files)
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return Error{Code::Failed, format("cannot remove '{}': {}", escaped(path), strerror(errno)), ""};
  if (r.root.empty()) return Done{};
  for (const std::string& path : r.files) tidy(fs::path(path).parent_path(), r.root);
  for (const std::string& path : r.files) {
    const fs::path relative = fs::path(path).lexically_relative(r.root);
    if (relative.begin()->string().starts_with("models--"))
      forget_commits(fs::path(r.root) / *relative.begin());
  }
  return Done{};
}

}  // namespace gimbal
