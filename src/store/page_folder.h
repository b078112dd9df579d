// Pages as files of a folder, which several processes may share. A file is written aside and renamed, so a
// page is whole or absent. The folder has a bound: before a page is written, the least recently used ones go.
// Uses are remembered as the files' times, which rise even if the clock jumps back.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/file.h"
#include "store/page_place.h"

namespace gimbal {

inline constexpr uint64_t kLeastFolderBytes = 100'000;  // of a bound that is worth a folder

// Thread-safe.
class PageFolder final : public PagePlace {
 public:
  struct Settings {
    std::string path;
    uint64_t most_bytes = 0;
    // Pages have keys with a secret: other users may see the folder, and even write there.
    bool shared = false;
    std::function<int64_t()> clock = {};  // nanoseconds since 1970; for tests
  };
  // Creates the folder with mode 0700 if it is absent. Errors: Usage if it is no folder, or belongs to
  // another user or is open to others without `shared`; Failed with the system's reason.
  static Result<std::unique_ptr<PageFolder>> open(Settings);

  bool has(const PageKey&) const override;
  Result<uint64_t> read(const PageKey&, std::span<std::byte> content) override;
  Status write(const PageKey&, Bytes content, uint64_t microseconds) override;
  void used(std::span<const PageKey>) override;

  uint64_t bytes() const override;  // as last counted and with own ones since
  uint64_t evicted() const override;
  // A page's file, unchecked, for another process of this user. Errors: as read().
  Result<InputFile> open_page(const PageKey&) const;
  uint64_t most_bytes() const { return settings_.most_bytes; }
  const std::string& path() const { return settings_.path; }

 private:
  struct Kept {
    std::string path;
    uint64_t bytes;
    int64_t used;
  };
  explicit PageFolder(Settings);
  std::string path_of(const PageKey&) const;
  std::vector<Kept> list();  // counts them, too
  Status make_room(uint64_t bytes);
  int64_t stamp();

  const Settings settings_;
  uint32_t mode_ = 0700;  // of the folder
  mutable std::mutex mutex_;
  uint64_t bytes_ = 0;  // of all pages
  uint64_t own_ = 0;    // written since the last list()
  uint64_t evicted_ = 0;
  int64_t last_stamp_ = 0;
};

}  // namespace gimbal
