#include "store/page_socket.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/sockets.h"

namespace gimbal::page_socket {

bool send_reply(int socket, const Reply& reply, const std::string& text, int descriptor) {
  ssize_t n;
  while ((n = send_with(socket, &reply, sizeof reply, descriptor)) < 0 && errno == EINTR) {}
  return n > 0 && send_all(socket, reinterpret_cast<const char*>(&reply) + n, sizeof reply - size_t(n)) &&
         send_all(socket, text.data(), text.size());
}

Result<uint64_t> receive_reply(int socket, int& descriptor) {
  const Error gone{Code::Failed, "the process with the prefix store's folder is gone", ""};
  Reply reply;
  ssize_t n;
  while ((n = receive_with(socket, &reply, sizeof reply, descriptor)) < 0 && errno == EINTR) {}
  std::string text;
  bool whole = n > 0 && receive_all(socket, reinterpret_cast<char*>(&reply) + n, sizeof reply - size_t(n)) &&
               reply.text <= kMostText && reply.failed <= uint32_t(Code::DeviceLost) + 1;
  if (whole) text.resize(reply.text), whole = receive_all(socket, text.data(), text.size());
  if (whole && reply.failed == 0) return reply.number;
  if (descriptor >= 0) close(std::exchange(descriptor, -1));
  if (!whole) return gone;
  return Error{Code(reply.failed - 1), std::move(text), ""};
}

}  // namespace gimbal::page_socket
