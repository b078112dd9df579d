#include "store/page_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "base/send_signal.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr uint64_t kBlock = 4096;  // a file takes whole blocks

uint64_t bytes_on_disk(uint64_t content) { return align_up(content + sizeof(PageHead), kBlock); }

int64_t system_clock() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

Error failed(const char* doing, const std::string& path) {
  return {Code::Failed, format("cannot {} '{}': {}", doing, escaped(path), std::strerror(errno)), ""};
}

// A failure makes a page look older than it is.
void set_time(const std::string& path, int64_t nanoseconds) {
  timespec t{};
  t.tv_sec = time_t(nanoseconds / 1000000000), t.tv_nsec = long(nanoseconds % 1000000000);
  const timespec both[2] = {t, t};
  (void)!utimensat(AT_FDCWD, path.c_str(), both, AT_SYMLINK_NOFOLLOW);
}

// Calls `each` with the names in a folder. A missing folder has none.
template <class Each>
void names_in(const std::string& folder, Each each) {
  DIR* d = opendir(folder.c_str());
  if (!d) return;
  while (const dirent* entry = readdir(d)) each(std::string_view(entry->d_name));
  closedir(d);
}

// "<page>.<process>-<number>": the draft of a process that was killed before it could rename it.
bool is_lost_draft(std::string_view name) {
  if (name.size() < 66 || name[64] != '.' || !is_page_name(name.substr(0, 64))) return false;
  const std::string number(name.substr(65, name.find('-') - 65));
  if (number.empty() || number.size() > 9 || number.find_first_not_of("0123456789") != number.npos)
    return false;
  return !send_signal(pid_t(std::stol(number)), 0) && errno == ESRCH;
}

// Created with this mode if it is absent, regardless of the umask.
Status make_folder(const std::string& path, uint32_t mode) {
  if (mkdir(path.c_str(), mode) == 0) {
    if (chmod(path.c_str(), mode) != 0) return failed("set the mode of", path);
  } else if (errno != EEXIST) {
    return failed("create the folder", path);
  }
  return Done{};
}

}  // namespace

PageFolder::PageFolder(Settings s) : settings_(std::move(s)) {}

Result<std::unique_ptr<PageFolder>> PageFolder::open(Settings settings) {
  std::unique_ptr<PageFolder> made(new PageFolder(std::move(settings)));
  const std::string& path = made->settings_.path;
  if (auto ok = make_folder(path, 0700); !ok) return ok.error();
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return failed("look at", path);
  if (!S_ISDIR(st.st_mode))
    return Error{Code::Usage, format("'{}' is no folder", escaped(path)), "name a folder"};
  made->mode_ = uint32_t(st.st_mode) & 01777;
  if (!made->settings_.shared) {
    if (st.st_uid != geteuid())
      return Error{Code::Usage,
                   format("the prefix store '{}' belongs to user {}, and this is user {}", escaped(path),
                          st.st_uid, geteuid()),
                   "name a folder of your own, or add a secret 'salt', which shared folders need"};
    if (st.st_mode & 077)
      return Error{Code::Usage,
                   format("the prefix store '{}' has mode {:04o}, expected 0700: other users could read or "
                          "replace its pages",
                          escaped(path), uint32_t(st.st_mode) & 07777),
                   "chmod 700 the folder, or add a secret 'salt', which shared folders need"};
  }
  made->list();
  return made;
}

std::string PageFolder::path_of(const PageKey& key) const {
  const std::string name = name_of(key);
  return format("{}/{}/{}", settings_.path, name.substr(0, 2), name);
}

bool PageFolder::has(const PageKey& key) const { return access(path_of(key).c_str(), F_OK) == 0; }

Result<uint64_t> PageFolder::read(const PageKey& key, std::span<std::byte> content) {
  const auto file = open_page(key);
  if (!file) return file.error();
  auto microseconds = read_page(*file, key, content);
  if (microseconds || microseconds.error().code != Code::Malformed) return microseconds;
  const std::string path = path_of(key);
  unlink(path.c_str());
  return Error{Code::Malformed, format("page '{}': {}", escaped(path), microseconds.error().message), ""};
}

Result<InputFile> PageFolder::open_page(const PageKey& key) const { return InputFile::open(path_of(key)); }

Status PageFolder::write(const PageKey& key, Bytes content, uint64_t microseconds) {
  if (has(key)) return Done{};
  const uint64_t bytes = bytes_on_disk(content.size());
  if (bytes > settings_.most_bytes)
    return Error{Code::OutOfMemory,
                 format("a page takes {} bytes, and the prefix store has {}", bytes, settings_.most_bytes),
                 "give the prefix store more bytes"};
  if (auto ok = make_room(bytes); !ok) return ok;
  const std::string path = path_of(key);
  if (auto ok = make_folder(path.substr(0, path.rfind('/')), mode_); !ok) return ok;
  auto draft = DraftFile::create(path, mode_ & 0666);
  if (!draft) return draft.error();
  const PageHead head = head_of(key, content, microseconds);
  if (auto ok = draft->write(&head, sizeof head); !ok) return ok;
  if (auto ok = draft->write(content.data(), content.size()); !ok) return ok;
  if (auto ok = draft->sync(); !ok) return ok;
  // If another thread has replaced the draft, the page is there all the same.
  if (auto ok = draft->commit(); !ok && !has(key)) return ok;
  {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes, own_ += bytes;
  }
  set_time(path, stamp());
  return Done{};
}

void PageFolder::used(std::span<const PageKey> keys) {
  for (size_t i = keys.size(); i-- > 0;) set_time(path_of(keys[i]), stamp());
}

uint64_t PageFolder::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

uint64_t PageFolder::evicted() const {
  const std::lock_guard lock(mutex_);
  return evicted_;
}

int64_t PageFolder::stamp() {
  const int64_t time = settings_.clock ? settings_.clock() : system_clock();
  const std::lock_guard lock(mutex_);
  return last_stamp_ = std::max(time, last_stamp_ + 1);
}

std::vector<PageFolder::Kept> PageFolder::list() {
  std::vector<Kept> all;
  uint64_t bytes = 0;
  int64_t last = 0;
  names_in(settings_.path, [&](std::string_view part) {
    if (part.size() != 2 || part.find_first_not_of("0123456789abcdef") != part.npos) return;
    const std::string folder = format("{}/{}", settings_.path, part);
    names_in(folder, [&](std::string_view name) {
      const std::string path = format("{}/{}", folder, name);
      if (is_lost_draft(name)) unlink(path.c_str());
      if (!is_page_name(name)) return;
      const auto state = InputFile::state_of_name(path);
      if (!state) return;
      all.push_back({path, align_up(state->size, kBlock), state->modified});
      bytes += all.back().bytes, last = std::max(last, all.back().used);
    });
  });
  const std::lock_guard lock(mutex_);
  bytes_ = bytes, own_ = 0, last_stamp_ = std::max(last_stamp_, last);
  return all;
}

// Other processes write, too: the folder is counted again after a 64th of the bound. What goes is an eighth,
// so that not every page needs a list.
Status PageFolder::make_room(uint64_t bytes) {
  const uint64_t most = settings_.most_bytes;
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ + bytes <= most && own_ <= most / 64) return Done{};
  }
  std::vector<Kept> all = list();
  uint64_t total = this->bytes(), gone = 0;
  if (total + bytes > most) {
    std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
    const uint64_t keep = std::min(most - bytes, most - most / 8);
    for (const Kept& page : all) {
      if (total <= keep) break;
      if (unlink(page.path.c_str()) != 0 && errno != ENOENT) continue;  // another user's, in a shared folder
      total -= page.bytes, gone++;
    }
  }
  const std::lock_guard lock(mutex_);
  bytes_ = total, evicted_ += gone;
  if (total + bytes > most)
    return Error{
        Code::OutOfMemory,
        format("the prefix store '{}' is full of pages that cannot be deleted", escaped(settings_.path)),
        "delete pages of other users, or name another folder"};
  return Done{};
}

}  // namespace gimbal
