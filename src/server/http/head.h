// The framing of HTTP/1. Strict, because a request that two readers interpret differently can smuggle
// another one (RFC 9112, sections 2 to 7 and 11.2). Pure functions over text.
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
  std::optional<uint64_t> length;  // of the body; without it and without `chunked` there is no body
};

// The end of the head in `input`, after its empty line. Empty: incomplete. Refusal: invalid, because a line
// ends with anything but CR LF, or because the head is longer than `limit`.
struct HeadEnd {
  std::optional<size_t> end;
  std::optional<Refusal> refusal;
};
HeadEnd find_head(std::string_view input, size_t limit);

// Parses a whole head, including its empty line.
std::optional<Refusal> parse_head(std::string_view text, Head& to);

// Decodes a chunked body as it arrives.
class ChunkedBody {
 public:
  explicit ChunkedBody(size_t limit) : limit_(limit) {}
  // Moves decoded data from the front of `input` to the end of `body`. Refusal: 400 or 413.
  std::optional<Refusal> push(std::string& input, std::string& body);
  bool done() const { return state_ == State::Done; }

 private:
  enum class State : uint8_t { Size, Data, DataEnd, Trailer, Done };
  State state_ = State::Size;
  uint64_t left_ = 0;
  size_t limit_, trailer_bytes_ = 0;
};

}  // namespace gimbal::http
