// Bytes and open files over Unix sockets.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace gimbal {

// Each waits until all bytes are through, also on a socket that does not block. False: the other side is
// gone.
bool send_all(int socket, const void* data, size_t bytes);
bool receive_all(int socket, void* to, size_t bytes);

// As send() without signals. `descriptor`: the receiver gets a copy with the first byte; -1: none.
ssize_t send_with(int socket, const void* data, size_t bytes, int descriptor);
// As recv(). `descriptor`: one that came with these bytes, for the caller to close, or -1. More than one are
// closed.
ssize_t receive_with(int socket, void* to, size_t bytes, int& descriptor);

}  // namespace gimbal
