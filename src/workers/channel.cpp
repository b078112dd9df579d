#include "workers/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "workers/message.h"

namespace gimbal {

Channel::Channel(int fd) : fd_(fd) {
  if (fd_ >= 0) fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
}

void Channel::swap(Channel& o) {
  std::swap(fd_, o.fd_), std::swap(out_, o.out_), std::swap(in_, o.in_);
  std::swap(sent_, o.sent_), std::swap(read_, o.read_), std::swap(seen_, o.seen_);
}

void Channel::send(std::string_view line) {
  out_ += line;
  out_ += '\n';
}

bool Channel::flush() {
  while (pending()) {
    const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += size_t(n);
  }
  out_.clear(), sent_ = 0;
  return true;
}

bool Channel::fill() {
  in_.erase(0, read_), seen_ -= read_, read_ = 0;
  char piece[1 << 16];
  // A fast writer must not keep the reader here.
  for (int i = 0; i < 16; i++) {
    const ssize_t n = recv(fd_, piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0) return false;
    in_.append(piece, size_t(n));
    if (size_t(n) < sizeof piece) break;
  }
  return true;
}

bool Channel::next(std::string_view& line) {
  const size_t end = in_.find('\n', seen_);
  if (end == std::string::npos) return seen_ = in_.size(), false;
  line = std::string_view(in_).substr(read_, end - read_);
  read_ = seen_ = end + 1;
  return true;
}

bool Channel::overlong() const { return in_.size() - read_ > wire::kMaxLine; }

}  // namespace gimbal
