// How a request becomes a WebSocket (RFC 6455, section 4).
#include <array>
#include <bit>

#include "base/text.h"
#include "server/http/websocket.h"

namespace gimbal::http {
namespace {

// FIPS 180-4. The handshake proves with it that the server speaks this protocol; it protects nothing.
std::string sha1(std::string text) {
  const uint64_t bits = uint64_t(text.size()) * 8;
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  for (int i = 7; i >= 0; i--) text += char(bits >> (8 * i) & 255);

  std::array<uint32_t, 5> h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (size_t at = 0; at < text.size(); at += 64) {
    uint32_t w[80];
    for (size_t i = 0; i < 16; i++) {
      w[i] = 0;
      for (size_t k = 0; k < 4; k++) w[i] = w[i] << 8 | uint8_t(text[at + 4 * i + k]);
    }
    for (size_t i = 16; i < 80; i++) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = h;
    for (size_t i = 0; i < 80; i++) {
      const uint32_t f = i < 20   ? (b & c) | (~b & d)
                         : i < 40 ? b ^ c ^ d
                         : i < 60 ? (b & c) | (b & d) | (c & d)
                                  : b ^ c ^ d;
      constexpr uint32_t kRound[] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
      const uint32_t t = std::rotl(a, 5) + f + e + kRound[i / 20] + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = t;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  }
  std::string out;
  for (uint32_t v : h)
    for (int i = 3; i >= 0; i--) out += char(v >> (8 * i) & 255);
  return out;
}

// The base64 of 16 bytes.
bool is_key(std::string_view s) {
  if (s.size() != 24 || !s.ends_with("==")) return false;
  return s.substr(0, 22).find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") == s.npos;
}

std::string_view value_of(const Request& r, std::string_view name) {
  const std::string* h = r.header(name);
  return h ? std::string_view(*h) : std::string_view();
}

int count_of(const Request& r, std::string_view name) {
  int n = 0;
  for (const Header& h : r.headers) n += h.name == name;
  return n;
}

}  // namespace

bool has_word(std::string_view header, std::string_view word) {
  for (;;) {
    const size_t end = std::min(header.find(','), header.size());
    if (lower(trimmed(header.substr(0, end))) == word) return true;
    if (end == header.size()) return false;
    header.remove_prefix(end + 1);
  }
}

std::string accepted_key(std::string_view key) {
  return base64(sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

std::optional<Refusal> accept_socket(const Request& r, Response& to) {
  if (!has_word(value_of(r, "upgrade"), "websocket") || !has_word(value_of(r, "connection"), "upgrade")) {
    to.headers = {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}};
    return Refusal{426, "this path is a WebSocket: connect to it with ws:// or wss://"};
  }
  if (value_of(r, "sec-websocket-version") != "13" || count_of(r, "sec-websocket-version") != 1) {
    to.headers = {{"Sec-WebSocket-Version", "13"}};
    return Refusal{426, "the version of a WebSocket is 13"};
  }
  const std::string_view key = value_of(r, "sec-websocket-key");
  if (!is_key(key) || count_of(r, "sec-websocket-key") != 1)
    return Refusal{400, "Sec-WebSocket-Key must be 16 bytes in base64"};
  if (!r.body.empty()) return Refusal{400, "a request for a WebSocket has no body"};
  to = {101, "", ""};
  to.headers = {
      {"Upgrade", "websocket"}, {"Connection", "Upgrade"}, {"Sec-WebSocket-Accept", accepted_key(key)}};
  return {};
}

}  // namespace gimbal::http
