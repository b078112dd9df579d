// The framing of HTTP/1: strict, because what two readers of a request read differently lets one request hide
// in another (RFC 9112, sections 2 to 7 and 11.2). Pure functions over text.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace gimbal::http {

struct Refusal {
  int status;
  std::string why;
};

struct Head {
  Request request;
  int minor = 1;  // of the version HTTP/1.
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;
  std::optional<uint64_t> length;  // of the body; without it and without `chunked` there is none
};

// Where the head in `input` ends, behind its empty line. Nothing: it is not complete yet. Refusal: it will be
// none, because a line ends in another way than CR LF, or it is longer than `limit`.
struct HeadEnd {
  std::optional<size_t> end;
  std::optional<Refusal> refusal;
};
HeadEnd find_head(std::string_view input, size_t limit);

// A whole head, its empty line included.
std::optional<Refusal> parse_head(std::string_view text, Head& to);

// A body in chunks, as it comes in.
class ChunkedBody {
 public:
  explicit ChunkedBody(size_t limit) : limit_(limit) {}
  // Moves what is complete from the front of `input` to the end of `body`. Refusal: 400 or 413.
  std::optional<Refusal> push(std::string& input, std::string& body);
  bool done() const { return state_ == State::Done; }

 private:
  enum class State : uint8_t { Size, Data, DataEnd, Trailer, Done };
  State state_ = State::Size;
  uint64_t left_ = 0;
  size_t limit_, trailer_bytes_ = 0;
};

}  // namespace gimbal::http
