#include "base/growing_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr std::string_view kFirstLine = "gimbal part 1\n";
constexpr uint64_t kMostInMemory = uint64_t(1) << 26;  // of one piece

uint64_t piece_hash(std::string_view bytes) { return hash_of(std::as_bytes(std::span(bytes))); }

// "END HASH": the end of a piece, and the hash of its bytes.
struct PieceRecord {
  uint64_t end, hash;
};

std::string line_of(const PieceRecord& r) { return format("{} {:016x}\n", r.end, r.hash); }

std::optional<PieceRecord> record_in(std::string_view line) {
  PieceRecord r{};
  const char *at = line.data(), *end = at + line.size();
  const auto number = std::from_chars(at, end, r.end);
  if (number.ec != std::errc{} || number.ptr == end || *number.ptr != ' ') return std::nullopt;
  const auto hash = std::from_chars(number.ptr + 1, end, r.hash, 16);
  if (hash.ec != std::errc{} || hash.ptr != end) return std::nullopt;
  return r;
}

bool write_to(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(size_t(n));
  }
  return true;
}

}  // namespace

Error GrowingFile::failed(const char* doing, const std::string& path) const {
  return {Code::Failed, format("cannot {} '{}': {}", doing, escaped(path), std::strerror(errno)), ""};
}

Result<GrowingFile> GrowingFile::open(const std::string& target, size_t piece) {
  namespace fs = std::filesystem;
  GrowingFile p;
  std::error_code e;
  p.target_ = fs::is_symlink(target, e) ? fs::weakly_canonical(target, e).string() : target;
  if (p.target_.empty()) p.target_ = target;
  p.part_ = p.target_ + ".part", p.log_ = p.part_ + ".log", p.piece_ = piece;
  struct stat old;
  const bool there = ::stat(p.target_.c_str(), &old) == 0;
  const mode_t mode = there ? old.st_mode & 0777 : 0644;
  p.fd_ = ::open(p.part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode);
  if (p.fd_ < 0) return p.failed("write", p.part_);
  if (::flock(p.fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(std::exchange(p.fd_, -1));
    return Error{Code::Failed, format("another process is writing '{}'", escaped(p.part_)),
                 "wait until it ends, or choose another name"};
  }
  if (there) (void)!fchmod(p.fd_, mode);  // regardless of the umask
  p.log_fd_ = ::open(p.log_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (p.log_fd_ < 0) return p.failed("write", p.log_);
  return p;
}

GrowingFile::GrowingFile(GrowingFile&& o) noexcept
    : target_(std::move(o.target_)),
      part_(std::move(o.part_)),
      log_(std::move(o.log_)),
      fd_(std::exchange(o.fd_, -1)),
      log_fd_(std::exchange(o.log_fd_, -1)),
      piece_(o.piece_),
      held_(std::move(o.held_)),
      at_(o.at_),
      kept_(o.kept_),
      written_(o.written_),
      begun_(o.begun_) {}

GrowingFile::~GrowingFile() {
  if (fd_ < 0) return;
  (void)!flush();
  struct stat part;
  if (begun_ ? written_ == 0 : ::fstat(fd_, &part) == 0 && part.st_size == 0) drop();
  if (fd_ >= 0) ::close(fd_);
  if (log_fd_ >= 0) ::close(log_fd_);
}

// Compares the pieces with the log, and the first ones with `head`. Sets kept_ to the end of the last one.
Result<GrowingFile::Found> GrowingFile::verify(std::string_view head) {
  auto file = InputFile::open(part_);
  if (!file) return file.error();
  auto log = read_file(log_);
  if (!log) return log.error();
  if (file->size() == 0 || log->empty()) return Found::Nothing;
  std::string_view lines(*log);
  if (!lines.starts_with(kFirstLine)) return Found::Damaged;
  lines.remove_prefix(kFirstLine.size());
  uint64_t end = 0;
  std::string bytes;
  // A last line without its end: the process ended while it wrote it.
  for (size_t length; (length = lines.find('\n')) != lines.npos; lines.remove_prefix(length + 1)) {
    const auto record = record_in(lines.substr(0, length));
    if (!record || record->end <= end || record->end > file->size() || record->end - end > kMostInMemory)
      return Found::Damaged;
    bytes.resize(size_t(record->end - end));
    if (auto ok = file->read(end, bytes.data(), bytes.size()); !ok) return ok.error();
    if (piece_hash(bytes) != record->hash) return Found::Damaged;
    if (end < head.size()) {
      const std::string_view known = head.substr(size_t(end), bytes.size());
      if (!std::string_view(bytes).starts_with(known)) return Found::Other;
    }
    end = record->end;
  }
  kept_ = end;
  return end ? Found::Same : Found::Nothing;
}

Status GrowingFile::start_anew() {
  kept_ = 0;
  if (::ftruncate(log_fd_, 0) != 0 || !write_to(log_fd_, kFirstLine)) return failed("write", log_);
  return Done{};
}

Result<GrowingFile::Found> GrowingFile::begin(const void* head, size_t bytes) {
  auto found = verify({static_cast<const char*>(head), bytes});
  if (!found) return found.error();
  if (*found != Found::Same)
    if (auto ok = start_anew(); !ok) return ok.error();
  written_ = kept_;
  if (::ftruncate(fd_, off_t(kept_)) != 0 || ::lseek(fd_, off_t(kept_), SEEK_SET) < 0)
    return failed("write", part_);
  begun_ = true;
  return found;
}

Status GrowingFile::write(const void* data, size_t bytes) {
  const size_t there = size_t(std::min<uint64_t>(bytes, kept_ - std::min(at_, kept_)));
  at_ += bytes;
  std::string_view rest(static_cast<const char*>(data), bytes);
  rest.remove_prefix(there);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, piece_ - held_.size());
    held_ += part, rest.remove_prefix(part.size());
    if (held_.size() < piece_) break;
    if (auto ok = flush(); !ok) return ok;
  }
  return Done{};
}

// The log comes second: it has no line of bytes that the part lacks.
Status GrowingFile::flush() {
  if (held_.empty()) return Done{};
  if (!write_to(fd_, held_)) return failed("write", part_);
  const PieceRecord record{written_ + held_.size(), piece_hash(held_)};
  if (!write_to(log_fd_, line_of(record))) return failed("write", log_);
  written_ = record.end;
  held_.clear();
  return Done{};
}

Status GrowingFile::commit() {
  if (auto ok = flush(); !ok) return ok;
  if (::fsync(fd_) != 0) return failed("write", part_);
  if (std::rename(part_.c_str(), target_.c_str()) != 0) return failed("replace", target_);
  ::unlink(log_.c_str());
  ::close(std::exchange(log_fd_, -1));
  if (::close(std::exchange(fd_, -1)) != 0) return failed("write", target_);
  return Done{};
}

void GrowingFile::drop() {
  ::unlink(part_.c_str()), ::unlink(log_.c_str());
  if (log_fd_ >= 0) ::close(std::exchange(log_fd_, -1));
  ::close(std::exchange(fd_, -1));
}

}  // namespace gimbal
