#include "base/sockets.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gimbal {
namespace {

#ifdef MSG_CMSG_CLOEXEC
constexpr int kCloseOnExec = MSG_CMSG_CLOEXEC;
#else
constexpr int kCloseOnExec = 0;
#endif

// Room for one descriptor.
union ControlRoom {
  cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int))];
};

// Whether a call that failed may be made again; waits for a socket that does not block.
bool may_go_on(int socket, short event) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
  pollfd p{socket, event, 0};
  poll(&p, 1, 1000);
  return true;
}

}  // namespace

bool send_all(int socket, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && may_go_on(socket, POLLOUT)) continue;
    if (n <= 0) return false;
    at += n, bytes -= size_t(n);
  }
  return true;
}

bool receive_all(int socket, void* to, size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = recv(socket, at, bytes, 0);
    if (n < 0 && may_go_on(socket, POLLIN)) continue;
    if (n <= 0) return false;
    at += n, bytes -= size_t(n);
  }
  return true;
}

ssize_t send_with(int socket, const void* data, size_t bytes, int descriptor) {
  if (descriptor < 0) return send(socket, data, bytes, MSG_NOSIGNAL);
  ControlRoom control{};
  iovec part{const_cast<void*>(data), bytes};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = &control, message.msg_controllen = sizeof control;
  cmsghdr* const c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t receive_with(int socket, void* to, size_t bytes, int& descriptor) {
  descriptor = -1;
  ControlRoom control{};
  iovec part{to, bytes};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = &control, message.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(socket, &message, kCloseOnExec);
  if (n < 0) return n;
  const cmsghdr* const c = CMSG_FIRSTHDR(&message);
  if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) return n;
  // The padding of the room holds another descriptor. A hostile sender fills it, too.
  for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
    int one;
    std::memcpy(&one, reinterpret_cast<const char*>(c) + at, sizeof one);
    if (descriptor < 0) descriptor = one;
    else close(one);
  }
  return n;
}

}  // namespace gimbal
