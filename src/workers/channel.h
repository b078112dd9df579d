// One end of a socket that carries lines both ways and never blocks. A line may have an open file with it.
#pragma once
#include <deque>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workers/line_cursor.h"

namespace gimbal {

class Channel {
 public:
  // `fd`: a stream socket, which it closes; -1: none. `takes_files`: keeps the files that arrive; else they
  // are closed.
  explicit Channel(int fd = -1, bool takes_files = false);
  Channel(Channel&& other) noexcept : Channel() { swap(other); }
  Channel& operator=(Channel&& other) noexcept { return swap(other), *this; }
  ~Channel();

  int fd() const { return fd_; }
  // Queues a line, given without its end and without line breaks. `file`: a copy of this descriptor goes with
  // it; -1: none.
  void send(std::string_view line, int file = -1);
  bool pending() const { return sent_ < out_.size(); }
  size_t pending_bytes() const { return out_.size() - sent_; }
  // Writes as much as the socket accepts. False: the other side is gone.
  bool flush();
  // Reads the available bytes. False: the other side is gone.
  bool fill();
  // The next whole line that was read; valid until fill(). False: there is none yet.
  bool next(std::string_view& line);
  // The next file that arrived, for the caller to close; -1: none. It is there when its line is.
  int take_file();
  // The current line has no end yet and is longer than any message may be.
  bool overlong() const;

 private:
  void swap(Channel& other);

  struct FileToSend {
    size_t at;  // of out_: its line
    int descriptor;
  };

  int fd_;
  bool takes_files_;
  std::string out_, in_;
  std::deque<FileToSend> files_out_;
  std::deque<int> files_in_;
  size_t sent_ = 0;   // of out_
  LineCursor lines_;  // of in_
};

}  // namespace gimbal
