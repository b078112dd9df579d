// TLS for connections, by OpenSSL 3, which is looked for on this machine only where TLS is asked for: the
// program needs no library for the rest.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gimbal::http {

// What one server's connections share: its certificate and key.
class TlsContext {
 public:
  // PEM files: the certificate with those that vouch for it behind it, and its key without a password.
  // Errors: Unsupported (no-tls-library) where OpenSSL 3 is missing; Usage, naming the file, for what cannot
  // be read, is no such thing, or does not belong together.
  static Result<std::shared_ptr<const TlsContext>> load(const std::string& certificate,
                                                        const std::string& key);
  ~TlsContext();

 private:
  friend class TlsStream;
  explicit TlsContext(void* context) : context_(context) {}
  void* context_;
};

// One connection's side of it: bytes in, bytes out, no socket. Of one thread.
class TlsStream {
 public:
  enum class State : uint8_t {
    Open,
    Ended,  // the client said that nothing more comes
    Failed  // what came is no TLS, or was changed on its way; to_client() may have an alert
  };
  // nullptr: no memory.
  static std::unique_ptr<TlsStream> create(std::shared_ptr<const TlsContext>);
  ~TlsStream();

  // What came from the client; appends what it says to `text`.
  State received(std::string_view bytes, std::string& text);
  // Behind the handshake.
  State say(std::string_view text);
  void say_end();
  // Moves what must be sent to the end of `to`.
  void to_client(std::string& to);

 private:
  TlsStream(std::shared_ptr<const TlsContext>, void* stream, void* in, void* out);
  State state_of(int result);

  std::shared_ptr<const TlsContext> context_;
  void *stream_, *in_, *out_;
};

}  // namespace gimbal::http
