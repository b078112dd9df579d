#include "server/http/websocket.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace gimbal::http {
namespace {

constexpr size_t kMostOfControl = 125;  // bytes

bool is_control(Opcode o) { return uint8_t(o) >= 8; }

// A code that a frame may carry (sections 7.4.1 and 7.4.2, and IANA's registry).
bool is_close_code(uint16_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

uint64_t big_endian(std::string_view bytes) {
  uint64_t n = 0;
  for (char c : bytes) n = n << 8 | uint8_t(c);
  return n;
}

void append_big_endian(std::string& to, uint64_t n, int bytes) {
  for (int i = bytes - 1; i >= 0; i--) to += char(n >> (8 * i) & 255);
}

}  // namespace

bool MessageReader::fail(uint16_t code, const char* why) {
  fault_ = CloseReason{code, why};
  return false;
}

// False: incomplete, or a fault.
bool MessageReader::read_head(std::string_view& input) {
  if (input.size() < 2) return false;
  const uint8_t first = uint8_t(input[0]), second = uint8_t(input[1]);
  const uint8_t kind = first & 15, size = second & 127;
  const bool masked = second & 128;
  if (first & 0x70) return fail(kProtocolError, "a reserved bit is set: no extension was agreed on");
  if ((kind > 2 && kind < 8) || kind > 10) return fail(kProtocolError, "a frame has an unknown opcode");
  if (masked != (from_ == From::Client))
    return fail(kProtocolError, masked ? "a server's frame is masked" : "a client's frame is not masked");
  opcode_ = Opcode(kind);
  final_ = first & 128;
  if (is_control(opcode_) && (!final_ || size > kMostOfControl))
    return fail(kProtocolError, "a control frame is cut or longer than 125 bytes");
  if (opcode_ == Opcode::Binary) return fail(kNoText, "messages here are texts, not binary");
  if (opcode_ == Opcode::Text && in_message_)
    return fail(kProtocolError, "a message begins inside another one");
  if (opcode_ == Opcode::Continuation && !in_message_)
    return fail(kProtocolError, "a continuation frame has no beginning");

  const size_t more = size == 126 ? 2 : size == 127 ? 8 : 0, head = 2 + more + (masked ? 4 : 0);
  if (input.size() < head) return false;
  left_ = more ? big_endian(input.substr(2, more)) : size;
  if ((more == 2 && left_ < 126) || (more == 8 && (left_ <= 0xFFFF || left_ >> 63)))
    return fail(kProtocolError, "the length of a frame is not written in the shortest form");
  if (!is_control(opcode_) && left_ > limit_ - std::min(limit_, message_.size()))
    return fail(kTooLong, "the message is too long");
  if (masked) std::copy_n(input.data() + head - 4, 4, mask_);
  else std::fill_n(mask_, 4, 0);
  masked_ = 0;
  input.remove_prefix(head);
  has_head_ = true;
  if (!is_control(opcode_)) in_message_ = true;
  return true;
}

std::optional<SocketMessage> MessageReader::next(std::string_view& input) {
  while (!fault_) {
    if (!has_head_ && !read_head(input)) return {};
    std::string& to = is_control(opcode_) ? control_ : message_;
    const size_t n = size_t(std::min<uint64_t>(left_, input.size()));
    const size_t at = to.size();
    to.append(input.substr(0, n));
    for (size_t i = at; i < to.size(); i++) to[i] = char(uint8_t(to[i]) ^ mask_[masked_++ & 3]);
    input.remove_prefix(n);
    left_ -= n;
    if (left_) return {};
    has_head_ = false;
    if (auto whole = end_frame()) return whole;
  }
  return {};
}

std::optional<SocketMessage> MessageReader::end_frame() {
  if (opcode_ == Opcode::Close) return close_frame();
  if (is_control(opcode_)) return SocketMessage{opcode_, std::exchange(control_, {})};
  if (!final_) return {};
  in_message_ = false;
  if (!is_utf8(message_)) return fail(kNotUtf8, "a text is not valid UTF-8"), std::nullopt;
  return SocketMessage{Opcode::Text, std::exchange(message_, {})};
}

std::optional<SocketMessage> MessageReader::close_frame() {
  SocketMessage m{Opcode::Close, std::exchange(control_, {})};
  if (m.data.empty()) return m;
  if (m.data.size() < 2) return fail(kProtocolError, "a close frame has half a code"), std::nullopt;
  m.code = uint16_t(big_endian(std::string_view(m.data).substr(0, 2)));
  m.data.erase(0, 2);
  if (!is_close_code(m.code)) return fail(kProtocolError, "a close frame has an invalid code"), std::nullopt;
  if (!is_utf8(m.data)) return fail(kNotUtf8, "the reason of a close frame is not UTF-8"), std::nullopt;
  return m;
}

std::string frame(Opcode opcode, std::string_view payload, std::optional<uint32_t> mask) {
  std::string out(1, char(0x80 | uint8_t(opcode)));
  const int masked = mask ? 0x80 : 0;
  if (payload.size() < 126) {
    out += char(masked | int(payload.size()));
  } else if (payload.size() <= 0xFFFF) {
    out += char(masked | 126);
    append_big_endian(out, payload.size(), 2);
  } else {
    out += char(masked | 127);
    append_big_endian(out, payload.size(), 8);
  }
  if (!mask) return out.append(payload);
  const size_t key = out.size();
  append_big_endian(out, *mask, 4);
  for (size_t i = 0; i < payload.size(); i++) out += char(payload[i] ^ out[key + (i & 3)]);
  return out;
}

std::string close_frame(const CloseReason& reason, std::optional<uint32_t> mask) {
  std::string payload;
  if (reason.code) {
    append_big_endian(payload, reason.code, 2);
    payload.append(reason.why, 0, kMostOfControl - 2);
  }
  return frame(Opcode::Close, payload, mask);
}

}  // namespace gimbal::http
