// Where the lines of a growing text begin and end: the framing of the protocol. Positions alone, without the
// text: a model checker reads this header (proofs/protocol.cpp).
#pragma once
#include <cstddef>
#include <optional>

namespace gimbal {

class LineCursor {
 public:
  struct Line {
    size_t begin, end;  // without the line feed
  };
  // Where to search for the next line feed.
  size_t search_from() const { return seen_; }
  // The next whole line; nullopt: it is not there yet. `feed`: the first line feed from search_from() on;
  // `size` or more: the text has none there. The text may only grow at its end, except by forget().
  std::optional<Line> next(size_t feed, size_t size) {
    if (feed >= size) {
      seen_ = size;
      return std::nullopt;
    }
    const Line line{read_, feed};
    read_ = seen_ = feed + 1;
    return line;
  }
  // Forgets the lines read so far. Returns the number of bytes to remove from the beginning of the text.
  size_t forget() {
    const size_t bytes = read_;
    seen_ -= read_, read_ = 0;
    return bytes;
  }
  // Bytes of the lines still to come.
  size_t unread(size_t size) const { return size - read_; }

 private:
  size_t read_ = 0, seen_ = 0;  // before: lines read; no line feed
};

}  // namespace gimbal
