// One end of a socket that carries lines both ways and never blocks.
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
  // Queues a line, given without its end and without line breaks.
  void send(std::string_view line);
  bool pending() const { return sent_ < out_.size(); }
  size_t pending_bytes() const { return out_.size() - sent_; }
  // Writes as much as the socket accepts. False: the other side is gone.
  bool flush();
  // Reads the available bytes. False: the other side is gone.
  bool fill();
  // The next whole line that was read; valid until fill(). False: there is none yet.
  bool next(std::string_view& line);
  // The current line has no end yet and is longer than any message may be.
  bool overlong() const;

 private:
  void swap(Channel& other);

  int fd_;
  std::string out_, in_;
  size_t sent_ = 0;  // of out_
  size_t read_ = 0;  // of in_: lines already returned
  size_t seen_ = 0;  // of in_: searched for an end of line, from read_ on
};

}  // namespace gimbal
