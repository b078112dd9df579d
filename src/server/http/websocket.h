// The frames of a WebSocket (RFC 6455), as bytes. Strict: a frame that two readers could interpret
// differently ends the connection. No extensions, so no compression; texts only.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/head.h"
#include "server/http/message.h"

namespace gimbal::http {

enum class Opcode : uint8_t { Continuation = 0, Text = 1, Binary = 2, Close = 8, Ping = 9, Pong = 10 };

// The codes of a close frame that gimbal sends (section 7.4.1).
enum CloseCode : uint16_t {
  kNormalClose = 1000,
  kGoingAway = 1001,
  kProtocolError = 1002,
  kNoText = 1003,
  kNotUtf8 = 1007,
  kAgainstRules = 1008,
  kTooLong = 1009,
  kServerFailed = 1011
};

struct CloseReason {
  uint16_t code = kNormalClose;  // 0: the frame has none
  std::string why = {};
};

// A whole text message or a control frame.
struct SocketMessage {
  Opcode kind = Opcode::Text;  // Text, Close, Ping or Pong
  std::string data = {};       // of a close frame: its reason
  uint16_t code = 0;           // of a close frame; 0: none
};

// Reads the frames of one direction as they arrive.
class MessageReader {
 public:
  enum class From : uint8_t { Client, Server };  // a client masks its frames, a server does not
  // `limit`: bytes of a message.
  MessageReader(From from, size_t limit) : from_(from), limit_(limit) {}

  // Takes bytes from the front of `input`. nullopt: none is complete, or fault().
  std::optional<SocketMessage> next(std::string_view& input);
  // The code and reason to close with, after a violation; nothing is read from then on.
  const std::optional<CloseReason>& fault() const { return fault_; }
  // Whether a message has begun that is not complete.
  bool is_within() const { return has_head_ || in_message_; }

 private:
  bool read_head(std::string_view& input);
  std::optional<SocketMessage> end_frame();
  std::optional<SocketMessage> close_frame();
  bool fail(uint16_t code, const char* why);

  const From from_;
  const size_t limit_;
  bool has_head_ = false, in_message_ = false, final_ = false;
  Opcode opcode_ = Opcode::Text;  // of the frame
  uint64_t left_ = 0;             // bytes of its payload
  uint8_t mask_[4] = {};
  size_t masked_ = 0;              // bytes unmasked so far
  std::string message_, control_;  // payloads
  std::optional<CloseReason> fault_;
};

// One whole frame. `mask`: four bytes, which clients need.
std::string frame(Opcode, std::string_view payload, std::optional<uint32_t> mask = {});
std::string close_frame(const CloseReason&, std::optional<uint32_t> mask = {});

// The value of Sec-WebSocket-Accept for that of Sec-WebSocket-Key.
std::string accepted_key(std::string_view key);
// Accepts a request for a WebSocket: sets the answer with status 101. Refusal: 426 for a request that
// requests none, or another version; 400 for a wrong one. All have the headers for their answer in `to`.
std::optional<Refusal> accept_socket(const Request&, Response& to);
// Whether a comma-separated header has this word, in any case.
bool has_word(std::string_view header, std::string_view word);

}  // namespace gimbal::http
