#include "apps/commands/socket_client.h"

#include <charconv>
#include <random>

#include "apps/toolkit/keyboard.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "fetch/http.h"

namespace gimbal {
namespace {

constexpr size_t kMostOfAHead = 64 << 10, kMostOfARefusal = 64 << 10, kMostOfAMessage = 64 << 20;  // bytes
constexpr double kHandshakeSeconds = 30;

uint32_t random_bits() { return std::random_device()(); }

std::string random_key() {
  std::string bytes;
  for (int i = 0; i < 4; i++) {
    const uint32_t bits = random_bits();
    for (int k = 0; k < 4; k++) bytes += char(bits >> (8 * k) & 255);
  }
  return base64(bytes);
}

// The value of a header of an answer; empty: none. `name` in lower case.
std::string header_of(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at != head.npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    const size_t colon = line.find(':');
    if (colon != line.npos && http::lower(line.substr(0, colon)) == name)
      return std::string(trimmed(line.substr(colon + 1)));
  }
  return "";
}

// The server's words in the body of a refusal, in any API's form.
std::string words_of(const std::string& body) {
  const Json j = parse_json(body);
  if (!j.is_object()) return "";
  const Json error = j.value("error", Json());
  const Json text = error.is_object() ? error.value("message", Json()) : error;
  return text.is_string() ? text.get<std::string>() : "";
}

const char* remedy_for_status(int status) {
  switch (status) {
    case 401: return "give the server's key: --api-key KEY";
    case 403: return "use a name that the server has: its options --allow-host and --cors-origin add some";
    case 404: return "is this a server of gimbal? Its WebSocket is at /ws/generate";
    case 503: return "try again when the server is ready: gimbal's /health/ready has status 200 then";
    default: return "is this the address of `gimbal serve`, as it prints it?";
  }
}

}  // namespace

SocketClient::SocketClient(std::unique_ptr<ByteStream> bytes, Url url)
    : bytes_(std::move(bytes)),
      url_(std::move(url)),
      reader_(http::MessageReader::From::Server, kMostOfAMessage) {}

Result<std::unique_ptr<SocketClient>> SocketClient::open(const Url& url, const std::string& api_key) {
  auto bytes = ByteStream::connect(url);
  if (!bytes) {
    Error e = bytes.error();
    if (e.code == Code::NotFound)
      e.remedy = "start a server there: gimbal serve MODEL; or give another address";
    return e;
  }
  std::unique_ptr<SocketClient> client(new SocketClient(std::move(*bytes), url));
  if (auto ok = client->shake_hands(api_key); !ok) return ok.error();
  return client;
}

SocketClient::~SocketClient() {
  if (!closed_) static_cast<void>(bytes_->send(http::close_frame({}, random_bits())));
}

Status SocketClient::shake_hands(const std::string& api_key) {
  const std::string key = random_key();
  std::string request = format(
      "GET {}{} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
      "{}\r\n"
      "Sec-WebSocket-Version: 13\r\nUser-Agent: gimbal\r\n",
      url_.path, url_.query, url_.host, key);
  if (!api_key.empty()) request += format("Authorization: Bearer {}\r\n", api_key);
  closed_ = true;  // until the server has agreed
  if (auto ok = bytes_->send(request + "\r\n"); !ok) return ok.error();
  const double end = now() + kHandshakeSeconds;
  const auto read = [&]() -> Status {
    const double left = end - now();
    if (left <= 0)
      return Error{Code::Failed, format("{} did not answer within 30 seconds", url_.origin()),
                   remedy_for_status(0)};
    auto got = bytes_->receive(input_, left);
    if (!got) return got.error();
    if (!*got && InterruptGuard::interrupted()) return cancelled();
    return Done{};
  };
  size_t at;
  while ((at = input_.find("\r\n\r\n")) == input_.npos) {
    if (input_.size() > kMostOfAHead)
      return Error{Code::Failed, format("{} answers without an end of its headers", url_.origin()),
                   remedy_for_status(0)};
    if (auto ok = read(); !ok) return ok;
  }
  const std::string head = input_.substr(0, at);
  input_.erase(0, at + 4);
  int status = 0;
  if (head.starts_with("HTTP/1.1 ") && head.size() >= 12)
    std::from_chars(head.data() + 9, head.data() + 12, status);
  if (status == 101) {
    if (!http::has_word(header_of(head, "upgrade"), "websocket") ||
        header_of(head, "sec-websocket-accept") != http::accepted_key(key))
      return Error{Code::Failed, format("{} does not speak the protocol of WebSockets", url_.origin()),
                   remedy_for_status(0)};
    closed_ = false;
    return Done{};
  }
  size_t length = 0;
  const std::string size = header_of(head, "content-length");
  std::from_chars(size.data(), size.data() + size.size(), length);
  while (input_.size() < std::min(length, kMostOfARefusal) && read()) {}
  const std::string words = words_of(input_);
  return Error{Code::Failed,
               format("{} refuses the connection with status {}{}{}", url_.origin(), status,
                      words.empty() ? "" : ": ", escaped(words)),
               remedy_for_status(status)};
}

Status SocketClient::send(std::string_view text) {
  return bytes_->send(http::frame(http::Opcode::Text, text, random_bits()));
}

Result<std::optional<std::string>> SocketClient::receive(double seconds) {
  for (bool waited = false;;) {
    std::string_view rest = input_;
    auto m = reader_.next(rest);
    input_.erase(0, input_.size() - rest.size());
    if (const auto& fault = reader_.fault()) {
      closed_ = true;
      static_cast<void>(bytes_->send(http::close_frame(*fault, random_bits())));
      return Error{Code::Failed, format("{} broke the protocol: {}", url_.origin(), fault->why),
                   remedy_for_status(0)};
    }
    if (m && m->kind == http::Opcode::Text) return std::optional(std::move(m->data));
    if (m && m->kind == http::Opcode::Ping) {
      if (auto ok = bytes_->send(http::frame(http::Opcode::Pong, m->data, random_bits())); !ok)
        return ok.error();
    }
    if (m && m->kind == http::Opcode::Close) {
      closed_ = true;
      return Error{Code::Failed,
                   format("{} closed the connection{}{}", url_.origin(), m->data.empty() ? "" : ": ",
                          escaped(m->data)),
                   "is the server still running?"};
    }
    if (m) continue;
    if (waited) return std::optional<std::string>();
    auto got = bytes_->receive(input_, seconds);
    if (!got) {
      closed_ = true;
      return got.error();
    }
    waited = !*got;
  }
}

}  // namespace gimbal
