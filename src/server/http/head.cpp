#include "server/http/head.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace gimbal::http {
namespace {

constexpr size_t kMaxHeaders = 100, kMaxSizeLine = 256, kMaxTrailerBytes = 8 << 10;

bool is_token_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), is_token_char); }

// Text of a header: no control characters but tabs.
bool is_field_text(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c == '\t' || (uint8_t(c) >= 32 && c != 127); });
}

Refusal bad(std::string why) { return {400, std::move(why)}; }

// Takes the next line from `text`, without its CR LF; `text` must have one.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = char(std::tolower(static_cast<unsigned char>(c)));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool decode_path(std::string_view raw, std::string& to) {
  for (size_t i = 0; i < raw.size(); i++) {
    if (raw[i] != '%') {
      to += raw[i];
      continue;
    }
    if (i + 2 >= raw.size()) return false;
    const int high = hex_digit(raw[i + 1]), low = hex_digit(raw[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
    to += char(high * 16 + low);
    i += 2;
  }
  return true;
}

std::optional<Refusal> parse_target(std::string_view target, Request& to) {
  for (const std::string_view scheme : {"http://", "https://"})  // the form for proxies
    if (lower(target.substr(0, scheme.size())) == scheme) {
      const size_t path = target.find('/', scheme.size());
      target = path == target.npos ? "/" : target.substr(path);
    }
  if (target == "*" && to.method == "OPTIONS") {
    to.path = "*";
    return {};
  }
  if (!target.starts_with('/')) return bad("the target of the request is not a path");
  const size_t question = std::min(target.find('?'), target.size());
  if (question < target.size()) to.query = target.substr(question + 1);
  if (!decode_path(target.substr(0, question), to.path)) return bad("the path has a % without two digits");
  return {};
}

std::optional<Refusal> parse_request_line(std::string_view line, Head& to) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return bad("the first line is not a request");
  to.request.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  if (!is_token(to.request.method)) return bad("the method is not a word");
  if (!std::all_of(target.begin(), target.end(), [](char c) { return c > 32 && c < 127; }))
    return bad("the target of the request has a character that must be encoded");
  if (version.size() != 8 || !version.starts_with("HTTP/") || !std::isdigit(uint8_t(version[5])) ||
      version[6] != '.' || !std::isdigit(uint8_t(version[7])))
    return bad("the first line names no version of HTTP");
  if (version[5] != '1') return Refusal{505, "only HTTP/1.0 and HTTP/1.1 are supported"};
  to.minor = version[7] == '0' ? 0 : 1;
  return parse_target(target, to.request);
}

// Evaluates the headers about the connection and the body.
class Framing {
 public:
  explicit Framing(Head& to) : to_(to) { to.keep_alive = to.minor > 0; }

  std::optional<Refusal> header(const std::string& name, const std::string& value) {
    if (name == "host") {
      if (hosts_++) return bad("there are two Host headers");
      if (value.find_first_of(" \t,/@") != value.npos) return bad("the Host header does not name a host");
    } else if (name == "content-length") {
      return content_length(value);
    } else if (name == "transfer-encoding") {
      if (to_.chunked || lower(value) != "chunked")
        return bad("the only supported Transfer-Encoding is chunked");
      to_.chunked = true;
    } else if (name == "connection") {
      connection(value);
    } else if (name == "expect") {
      if (lower(value) != "100-continue")
        return Refusal{417, "the only supported expectation is 100-continue"};
      to_.expects_continue = to_.minor > 0;
    }
    return {};
  }

  std::optional<Refusal> finish() const {
    if (!hosts_ && to_.minor > 0) return bad("the Host header is missing");
    if (to_.chunked && to_.length) return bad("the request has both Content-Length and Transfer-Encoding");
    if (to_.chunked && to_.minor == 0) return bad("HTTP/1.0 has no Transfer-Encoding");
    return {};
  }

 private:
  std::optional<Refusal> content_length(const std::string& value) {
    if (to_.length) return bad("there are two Content-Length headers");
    if (value.empty() || value.size() > 18 ||
        !std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return bad("Content-Length is not a number");
    uint64_t n = 0;
    for (char c : value) n = n * 10 + uint64_t(c - '0');
    to_.length = n;
    return {};
  }

  void connection(const std::string& value) {
    for (size_t at = 0, end; at <= value.size(); at = end + 1) {
      end = std::min(value.find(',', at), value.size());
      const std::string word = lower(trimmed(std::string_view(value).substr(at, end - at), " \t"));
      if (word == "close") closes_ = true;
      if (word == "keep-alive" && to_.minor == 0) to_.keep_alive = true;
    }
    if (closes_) to_.keep_alive = false;
  }

  Head& to_;
  int hosts_ = 0;
  bool closes_ = false;
};

}  // namespace

const std::string* Request::header(std::string_view name) const {
  for (const Header& h : headers)
    if (h.name == name) return &h.value;
  return nullptr;
}

const char* reason_of(int status) {
  switch (status) {
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return status < 400 ? "OK" : "Error";
  }
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = char(std::tolower(uint8_t(c)));
  return out;
}

HeadEnd find_head(std::string_view input, size_t limit) {
  const size_t end = input.find("\r\n\r\n");
  const std::string_view head = input.substr(0, end == input.npos ? end : end + 4);
  for (size_t at = head.find('\n'); at != head.npos; at = head.find('\n', at + 1))
    if (at == 0 || head[at - 1] != '\r') return {{}, bad("a line ends without CR LF")};
  if (head.size() > limit) return {{}, Refusal{431, "the head of the request is too long"}};
  if (end == input.npos) return {};
  return {end + 4, {}};
}

std::optional<Refusal> parse_head(std::string_view text, Head& to) {
  if (auto no = parse_request_line(take_line(text), to)) return no;
  Framing framing(to);
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == line.npos || !is_token(line.substr(0, colon))) return bad("a header has no name");
    const std::string_view value = trimmed(line.substr(colon + 1), " \t");
    if (!is_field_text(value)) return bad("a header has a control character");
    if (to.request.headers.size() >= kMaxHeaders) return Refusal{431, "there are too many headers"};
    to.request.headers.push_back({lower(line.substr(0, colon)), std::string(value)});
    const Header& h = to.request.headers.back();
    if (auto no = framing.header(h.name, h.value)) return no;
  }
  // RFC 9110, section 7.8: HTTP/1.0 has no Upgrade.
  if (to.minor == 0) std::erase_if(to.request.headers, [](const Header& h) { return h.name == "upgrade"; });
  return framing.finish();
}

std::optional<Refusal> ChunkedBody::push(std::string& input, std::string& body) {
  std::string_view rest = input;
  const auto consumed = [&](std::optional<Refusal> no = {}) {
    input.erase(0, input.size() - rest.size());
    return no;
  };
  while (state_ != State::Done) {
    if (state_ == State::Data) {
      const size_t n = size_t(std::min<uint64_t>(left_, rest.size()));
      body += rest.substr(0, n);
      rest.remove_prefix(n);
      left_ -= n;
      if (left_) return consumed();
      state_ = State::DataEnd;
    }
    const size_t end = rest.find('\n');
    if (std::min(end, rest.size()) > (state_ == State::Trailer ? kMaxTrailerBytes : kMaxSizeLine))
      return consumed(bad("a line between chunks is too long"));
    if (end == rest.npos) return consumed();
    if (end == 0 || rest[end - 1] != '\r') return consumed(bad("a line between chunks ends without CR LF"));
    const std::string_view line = rest.substr(0, end - 1);
    rest.remove_prefix(end + 1);
    if (!is_field_text(line)) return consumed(bad("a line between chunks has a control character"));
    if (state_ == State::DataEnd) {
      if (!line.empty()) return consumed(bad("a chunk is longer than it says"));
      state_ = State::Size;
    } else if (state_ == State::Trailer) {
      trailer_bytes_ += line.size();
      if (line.empty()) state_ = State::Done;
      else if (!is_token(line.substr(0, line.find(':')))) return consumed(bad("a trailer has no name"));
      if (trailer_bytes_ > kMaxTrailerBytes) return consumed(Refusal{431, "the trailers are too long"});
    } else {
      size_t digits = 0;
      left_ = 0;
      for (; digits < line.size() && hex_digit(line[digits]) >= 0; digits++)
        left_ = left_ * 16 + uint64_t(hex_digit(line[digits]));
      if (digits == 0 || digits > 15 || (digits < line.size() && line[digits] != ';'))
        return consumed(bad("the size of a chunk is not a number"));
      if (left_ > limit_ || body.size() + left_ > limit_)
        return consumed(Refusal{413, "the body of the request is too long"});
      state_ = left_ ? State::Data : State::Trailer;
    }
  }
  return consumed();
}

}  // namespace gimbal::http
