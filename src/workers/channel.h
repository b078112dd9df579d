// One end of a socket that carries lines both ways without ever waiting.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace gimbal {

class Channel {
 public:
  explicit Channel(int fd = -1);  // a stream socket, which it closes; -1: none
  Channel(Channel&& other) noexcept : Channel() { swap(other); }
  Channel& operator=(Channel&& other) noexcept { return swap(other), *this; }
  ~Channel();

  int fd() const { return fd_; }
  // Queues a line, which must not contain an end of line.
  void send(std::string_view line);
  bool pending() const { return sent_ < out_.size(); }
  size_t pending_bytes() const { return out_.size() - sent_; }
  // Writes what the socket takes. False: the other side is gone.
  bool flush();
  // Reads what is there. False: the other side is gone.
  bool fill();
  // The next whole line that was read; valid until fill(). False: there is none yet.
  bool next(std::string_view& line);
  // A line that never ends: more of it was read than any message may have.
  bool overlong() const;

 private:
  void swap(Channel& other);

  int fd_;
  std::string out_, in_;
  size_t sent_ = 0;  // of out_
  size_t read_ = 0;  // of in_: lines that were given
  size_t seen_ = 0;  // of in_: has no end of line beyond read_
};

}  // namespace gimbal
