#include "fetch/byte_stream.h"

#include <poll.h>

#include "base/format.h"
#include "fetch/http.h"

namespace gimbal {
namespace {

constexpr double kSendSeconds = 30;

}  // namespace

Result<std::unique_ptr<ByteStream>> ByteStream::connect(const Url& url) {
  auto curl = Curl::open();
  if (!curl) return curl.error();
  const Curl& c = **curl;
  CURL* easy = c.init();
  if (!easy) return Error{Code::OutOfMemory, "out of memory for a connection", ""};
  std::unique_ptr<ByteStream> stream(new ByteStream(c, easy, url));
  char error[CURL_ERROR_SIZE];
  HeaderList headers(c);
  const std::string whole = url.whole();
  prepare(c, easy, whole, headers, error);
  c.set(easy, CURLOPT_CONNECT_ONLY, 1L);
  c.set(easy, CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
  c.set(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);  // a proxy passes bytes on only through a tunnel
  if (url.is_loopback()) c.set(easy, CURLOPT_NOPROXY, "*");
  const CURLcode code = c.perform(easy);
  if (code != CURLE_OK) {
    Error e = connection_error(c, code, url, error);
    if (code == CURLE_COULDNT_CONNECT) e.code = Code::NotFound;
    return e;
  }
  c.set(easy, CURLOPT_ERRORBUFFER, nullptr);
  c.info(easy, CURLINFO_ACTIVESOCKET, &stream->socket_);
  return stream;
}

ByteStream::~ByteStream() { curl_.cleanup(easy_); }

Error ByteStream::lost(CURLcode code) const {
  return {Code::Failed,
          code == CURLE_OK ? format("{} ended the connection", url_.origin())
                           : format("the connection to {} broke: {}", url_.origin(), curl_.error_text(code)),
          "is the server still running?"};
}

bool ByteStream::wait(bool writes, double seconds) const {
  pollfd p{socket_, short(writes ? POLLOUT : POLLIN), 0};
  return poll(&p, 1, int(seconds * 1000)) > 0;
}

Status ByteStream::send(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t n = 0;
    const CURLcode code = curl_.send(easy_, bytes.data(), bytes.size(), &n);
    bytes.remove_prefix(n);
    if (code == CURLE_OK) continue;
    if (code != CURLE_AGAIN || !wait(true, kSendSeconds)) return lost(code);
  }
  return Done{};
}

Result<bool> ByteStream::receive(std::string& to, double seconds) {
  char bytes[16384];
  size_t n = 0;
  // TLS may hold bytes that the socket does not show, so reading comes before waiting.
  CURLcode code = curl_.receive(easy_, bytes, sizeof bytes, &n);
  if (code == CURLE_AGAIN) {
    if (!wait(false, seconds)) return false;
    code = curl_.receive(easy_, bytes, sizeof bytes, &n);
    if (code == CURLE_AGAIN) return false;
  }
  if (code != CURLE_OK || n == 0) return lost(code);
  to.append(bytes, n);
  return true;
}

}  // namespace gimbal
