#include "workers/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/sockets.h"
#include "workers/message.h"

namespace gimbal {

constexpr size_t kMostFiles = 64;  // that no message took yet

Channel::Channel(int fd, bool takes_files) : fd_(fd), takes_files_(takes_files) {
  if (fd_ >= 0) fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
  for (const FileToSend& f : files_out_) close(f.descriptor);
  for (const int file : files_in_) close(file);
}

void Channel::swap(Channel& o) {
  std::swap(fd_, o.fd_), std::swap(out_, o.out_), std::swap(in_, o.in_);
  std::swap(takes_files_, o.takes_files_);
  std::swap(files_out_, o.files_out_), std::swap(files_in_, o.files_in_);
  std::swap(sent_, o.sent_), std::swap(lines_, o.lines_);
}

void Channel::send(std::string_view line, int file) {
  if (file >= 0) files_out_.push_back({out_.size(), fcntl(file, F_DUPFD_CLOEXEC, 0)});
  out_ += line;
  out_ += '\n';
}

bool Channel::flush() {
  while (pending()) {
    // A file goes with the first byte of its line, and never two with one piece.
    const bool with_file = !files_out_.empty() && files_out_[0].at == sent_;
    const size_t next = with_file ? 1 : 0;
    const size_t end = next < files_out_.size() ? files_out_[next].at : out_.size();
    const int file = with_file ? files_out_[0].descriptor : -1;
    const ssize_t n = send_with(fd_, out_.data() + sent_, end - sent_, file);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += size_t(n);
    if (with_file) close(file), files_out_.pop_front();
  }
  out_.clear(), sent_ = 0;
  return true;
}

bool Channel::fill() {
  in_.erase(0, lines_.forget());
  char piece[1 << 16];
  // A fast writer must not keep the reader here.
  for (int i = 0; i < 16; i++) {
    int file = -1;
    const ssize_t n = receive_with(fd_, piece, sizeof piece, file);
    if (file >= 0 && takes_files_ && files_in_.size() < kMostFiles) files_in_.push_back(file);
    else if (file >= 0) close(file);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0) return false;
    in_.append(piece, size_t(n));
    if (size_t(n) < sizeof piece) break;
  }
  return true;
}

bool Channel::next(std::string_view& line) {
  const auto found = lines_.next(in_.find('\n', lines_.search_from()), in_.size());
  if (found) line = std::string_view(in_).substr(found->begin, found->end - found->begin);
  return found.has_value();
}

int Channel::take_file() {
  if (files_in_.empty()) return -1;
  const int file = files_in_.front();
  files_in_.pop_front();
  return file;
}

bool Channel::overlong() const { return lines_.unread(in_.size()) > wire::kMaxLine; }

}  // namespace gimbal
