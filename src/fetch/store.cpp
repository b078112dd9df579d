#include "fetch/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/folders.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"
#include "fetch/choice.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

// "models--OWNER--REPO".
std::string folder_name(const std::string& repository) {
  std::string name = "models--" + repository;
  name.replace(name.find('/'), 1, "--");
  return name;
}

std::string repository_folder(const ModelAddress& a) {
  const std::string hub = hub_cache_folder();
  return hub.empty() ? "" : hub + "/" + folder_name(a.repository);
}

Error no_cache() {
  return {Code::Failed, "there is no folder for models: neither HF_HOME, XDG_CACHE_HOME nor HOME is set",
          "set HF_HOME to a folder with enough space"};
}

Error system_error(const char* doing, const std::string& path, const std::string& why) {
  return {Code::Failed, format("cannot {} '{}': {}", doing, escaped(path), why),
          "HF_HOME (or HF_HUB_CACHE) names another folder for models of Hugging Face, XDG_CACHE_HOME for "
          "those of plain URLs"};
}

bool is_commit(const std::string& revision) {
  return revision.size() == 40 && revision.find_first_not_of("0123456789abcdef") == revision.npos;
}

// Files of a snapshot whose bytes are there.
std::vector<RemoteName> files_of(const fs::path& snapshot) {
  constexpr size_t kMost = 10000;
  std::vector<RemoteName> all;
  std::error_code e, gone;
  for (auto at = fs::recursive_directory_iterator(snapshot, e);
       !e && at != fs::recursive_directory_iterator() && all.size() < kMost; at.increment(e))
    if (at->is_regular_file(gone) && !gone)
      all.push_back({at->path().lexically_relative(snapshot).string(), at->file_size(gone)});
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.path < b.path; });
  return all;
}

}  // namespace

Status make_folder(const std::string& path) {
  std::error_code e, unknown;
  fs::create_directories(path, e);
  if (e && !fs::is_directory(path, unknown)) return system_error("create", path, e.message());
  return Done{};
}

Result<Place> hub_place(const ModelAddress& a, const std::string& commit, const std::string& file,
                        const std::string& blob) {
  const std::string folder = repository_folder(a);
  if (folder.empty()) return no_cache();
  return Place{format("{}/snapshots/{}/{}", folder, commit, file), format("{}/blobs/{}", folder, blob),
               format("{}/.locks/{}/{}.lock", hub_cache_folder(), folder_name(a.repository), blob)};
}

std::string url_models_folder() {
  const std::string cache = cache_folder();
  return cache.empty() ? "" : cache + "/models";
}

Result<Place> url_place(const Url& u) {
  const std::string folder = url_models_folder();
  if (folder.empty()) return no_cache();
  // Another query may be another file.
  const std::string query = u.query.empty() ? "" : format("@{:016x}", Hash().add(u.query).value());
  const size_t name = u.path.rfind('/');
  std::string host = u.host;
  std::replace(host.begin(), host.end(), ':', '_');
  const std::string path = format("{}/{}{}{}{}", folder, host, u.path.substr(0, name),
                                  query.empty() ? "" : "/" + query, u.path.substr(name));
  return Place{path, path, format("{}/.locks/{:016x}.lock", folder, Hash().add(path).value())};
}

Status link_blob(const Place& p) {
  if (p.path == p.blob) return Done{};
  const fs::path folder = fs::path(p.path).parent_path();
  if (auto ok = make_folder(folder.string()); !ok) return ok;
  const std::string target = fs::path(p.blob).lexically_relative(folder).string();
  std::error_code e;
  if (fs::read_symlink(p.path, e) == target && !e) return Done{};
  const std::string fresh = format("{}.{}", p.path, getpid());
  ::unlink(fresh.c_str());
  if (symlink(target.c_str(), fresh.c_str()) != 0 || std::rename(fresh.c_str(), p.path.c_str()) != 0)
    return system_error("link", p.path, strerror(errno));
  return Done{};
}

Status note_commit(const ModelAddress& a, const std::string& commit) {
  if (is_commit(a.revision)) return Done{};
  const std::string path = format("{}/refs/{}", repository_folder(a), a.revision);
  if (auto known = read_file(path, 100); known && *known == commit) return Done{};
  return replace_file(path, commit);
}

Result<std::optional<std::string>> find_fetched(const ModelAddress& a) {
  std::optional<std::string> nothing;
  std::error_code e;
  if (a.repository.empty()) {
    auto url = Url::parse(a.url);
    if (!url) return url.error();
    auto place = url_place(*url);
    if (place && fs::is_regular_file(place->path, e)) return std::optional(place->path);
    return nothing;
  }
  const std::string folder = repository_folder(a);
  if (folder.empty()) return nothing;
  std::string commit = a.revision;
  if (!is_commit(commit)) {
    auto noted = read_file(format("{}/refs/{}", folder, a.revision), 100);
    if (!noted) return nothing;
    commit = *noted;
  }
  if (!is_commit(commit)) return nothing;
  const fs::path snapshot = fs::path(folder) / "snapshots" / commit;
  auto found = choose(files_of(snapshot), a);
  if (found && found->path == kFolderMark) return std::optional(snapshot.string());
  if (found) return std::optional((snapshot / found->path).string());
  if (found.error().code == Code::Usage) return found.error();
  return nothing;
}

Result<std::optional<FileLock>> FileLock::try_lock(const std::string& path) {
  if (auto ok = make_folder(fs::path(path).parent_path().string()); !ok) return ok.error();
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("write", path, strerror(errno));
  FileLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
    // Python's programs remove it when they are done: then this is no longer the file that others lock.
    struct stat mine, there;
    const bool same = fstat(fd, &mine) == 0 && stat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino;
    return same ? std::optional<FileLock>(std::move(lock)) : std::nullopt;
  }
  if (errno == EWOULDBLOCK || errno == EINTR) return std::optional<FileLock>();
  return system_error("lock", path, strerror(errno));
}

FileLock::FileLock(FileLock&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace gimbal
