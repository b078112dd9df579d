// Bytes to and from a server over TCP or TLS, for protocols that begin with HTTP and are none.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fetch/address.h"
#include "fetch/curl.h"

namespace gimbal {

class ByteStream {
 public:
  // Connects within 30 seconds. The scheme is http, or https for TLS with a checked certificate. Errors:
  // those of Curl::open; NotFound if no program listens there; Failed, with the host and the cause.
  static Result<std::unique_ptr<ByteStream>> connect(const Url&);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;

  // Sends all bytes. Errors: Failed, also if the server takes nothing for 30 seconds.
  Status send(std::string_view bytes);
  // Appends bytes to `to`. Waits up to `seconds` for them, or less if a signal arrives: false. Errors: Failed
  // if the connection has ended.
  Result<bool> receive(std::string& to, double seconds);

 private:
  ByteStream(const Curl& curl, CURL* easy, Url url) : curl_(curl), easy_(easy), url_(std::move(url)) {}
  Error lost(CURLcode) const;
  bool wait(bool writes, double seconds) const;

  const Curl& curl_;
  CURL* easy_;
  const Url url_;
  curl_socket_t socket_ = CURL_SOCKET_BAD;
};

}  // namespace gimbal
