// One file of a model: from the server to its place, whole and checked or not at all.
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/text.h"
#include "fetch/part_file.h"
#include "fetch/pull_impl.h"
#include "fetch/transfer.h"

namespace gimbal {
namespace {

// One file's transfer as events.
class FileWatch final : public TransferWatch {
 public:
  FileWatch(PullWatch& watch, const std::string& file) : watch_(watch), file_(file) {}
  bool go_on() override { return watch_.on({PullEvent::Progress, file_, 0, 0}); }
  bool arrived(uint64_t done, uint64_t total) override {
    return watch_.on({PullEvent::Progress, file_, done, total});
  }
  void retried(const std::string& why) override { watch_.on({PullEvent::Retried, file_, 0, 0, why}); }

 private:
  PullWatch& watch_;
  const std::string& file_;
};

Result<std::string> sha256_of(const PartFile& part, const std::string& file, PullWatch& watch) {
  auto input = InputFile::open(part.path());
  if (!input) return input.error();
  Sha256 sha;
  std::string piece(1 << 20, 0);
  double told = 0;
  for (uint64_t at = 0; at < part.bytes();) {
    const size_t n = size_t(std::min<uint64_t>(piece.size(), part.bytes() - at));
    if (auto ok = input->read(at, piece.data(), n); !ok) return ok.error();
    sha.add(std::string_view(piece).substr(0, n));
    at += n;
    if (now() - told < 0.1) continue;
    told = now();
    if (!watch.on({PullEvent::Checking, file, at, part.bytes()})) return cancelled();
  }
  return sha.hex();
}

}  // namespace

Result<FileLock> Pull::Impl::lock(const PullFile& f) {
  for (bool told = false;;) {
    auto mine = FileLock::try_lock(f.place.lock);
    if (!mine) return mine.error();
    if (*mine) return std::move(**mine);
    if (!std::exchange(told, true)) watch().on({PullEvent::Waiting, f.name});
    if (!patience.go_on()) return cancelled();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Status Pull::Impl::fetch(PullFile& f) {
  auto mine = lock(f);
  if (!mine) return mine.error();
  std::error_code e;
  if (std::filesystem::is_regular_file(f.place.blob, e) &&
      (hub ? std::filesystem::file_size(f.place.blob, e) == f.bytes : true)) {
    f.here = true;  // fetched by the previous holder of the lock
    return link_blob(f.place);
  }
  auto at = locate(f);
  if (!at) return at.error();
  if (at->bytes != f.bytes)
    return Error{Code::Failed,
                 format("{} of {} has {} bytes at {}, where {} were announced", f.name, address.name(),
                        at->bytes, at->url.origin(), f.bytes),
                 "the repository may be changing now: run the same command again"};
  if (f.sha256.empty()) f.sha256 = at->sha256;
  const std::string folder = std::filesystem::path(f.place.blob).parent_path().string();
  if (auto ok = make_folder(folder); !ok) return ok;
  auto part = PartFile::open(f.place.blob, f.bytes, f.sha256.empty() ? at->unchanged : f.sha256);
  if (!part) return part.error();
  if (part->discarded()) watch().on({PullEvent::Changed, f.name});
  if (const uint64_t there = f.bytes - part->missing())
    watch().on({PullEvent::Resumed, f.name, there, f.bytes});
  if (struct statvfs s; statvfs(folder.c_str(), &s) == 0)
    if (const uint64_t room = uint64_t(s.f_bavail) * s.f_frsize; room < part->missing())
      return Error{Code::Failed,
                   format("not enough disk space for {}: {} more are needed, and '{}' has {}", f.name,
                          human_bytes(part->missing()), escaped(folder), human_bytes(room)),
                   "free disk space, or set HF_HOME to another folder"};
  if (auto ok = fill(f, *at, *part); !ok) return ok;
  if (auto ok = check(f, *part); !ok) return ok;
  if (auto ok = part->finish(); !ok) return ok;
  f.here = true;
  return link_blob(f.place);
}

Status Pull::Impl::fill(const PullFile& f, const Located& first, PartFile& part) {
  FileWatch file(watch(), f.name);
  Located at = first;
  for (bool anew = false;;) {
    if (!at.ranges) {
      watch().on({PullEvent::NoRanges, f.name});
      if (!part.restart()) return Error{Code::Failed, format("cannot empty '{}'", part.path()), ""};
    }
    part.cut(at.ranges ? size_t(options.connections) : 1);
    const uint64_t missing = part.missing();
    const TransferEnd end =
        transfer(http->curl(), {at.url, credential, at.unchanged, at.ranges, at.from}, part, file);
    const bool progress = part.missing() < missing;
    switch (end.how) {
      case TransferEnd::Complete: return Done{};
      case TransferEnd::Cancelled: return cancelled();
      case TransferEnd::Failed: return end.error;
      case TransferEnd::Refused:
        if (!progress) return refused(end.answer, address.name(), credential.for_url(at.url));
        break;  // the address may have expired; a new one serves the remainder
      case TransferEnd::NoRanges:
        if (std::exchange(anew, true))
          return Error{Code::Failed, format("{} changed while it was fetched", f.name),
                       "wait until the program that writes it has finished"};
        watch().on({PullEvent::Changed, f.name});
        if (!part.restart()) return Error{Code::Failed, format("cannot empty '{}'", part.path()), ""};
    }
    auto next = locate(f);
    if (!next) return next.error();
    if (next->bytes != part.bytes())
      return Error{Code::Failed,
                   format("{} has {} bytes now, and had {} before", f.name, next->bytes, part.bytes()),
                   "the file was replaced meanwhile: run the same command again"};
    at = std::move(*next);
  }
}

Status Pull::Impl::check(const PullFile& f, PartFile& part) {
  if (f.sha256.empty()) {
    watch().on({PullEvent::Unchecked, f.name});
    return Done{};
  }
  auto found = sha256_of(part, f.name, watch());
  if (!found) return found.error();
  if (*found == f.sha256) return Done{};
  part.remove();
  return Error{Code::Failed,
               format("{} arrived with wrong contents, and was removed: expected the sha256 {}, found {}",
                      f.name, f.sha256, *found),
               "run the same command again; if it fails again, the server or a proxy changes the file"};
}

}  // namespace gimbal
