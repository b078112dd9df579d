// TLS through OpenSSL 3, which is loaded at run time and only if TLS is enabled: the program has no link
// dependency on it.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gimbal::http {

// The certificate and key, shared by a server's connections.
class TlsContext {
 public:
  // Loads PEM files: the certificate chain (leaf first) and its key, without a password. Errors:
  // Unsupported (no-tls-library) if OpenSSL 3 is missing; Usage, naming the file, if it is unreadable or
  // invalid, or if key and certificate do not match.
  static Result<std::shared_ptr<const TlsContext>> load(const std::string& certificate,
                                                        const std::string& key);
  ~TlsContext();

 private:
  friend class TlsStream;
  explicit TlsContext(void* context) : context_(context) {}
  void* context_;
};

// The TLS state of one connection: bytes in, bytes out, no socket. Not thread-safe.
class TlsStream {
 public:
  enum class State : uint8_t {
    Open,
    Ended,  // the client closed the TLS session
    Failed  // invalid or corrupted input; to_client() may have an alert
  };
  // nullptr: out of memory.
  static std::unique_ptr<TlsStream> create(std::shared_ptr<const TlsContext>);
  ~TlsStream();

  // Consumes bytes from the client; appends the decrypted text to `text`.
  State received(std::string_view bytes, std::string& text);
  // Encrypts text. Call it after the handshake.
  State say(std::string_view text);
  void say_end();
  // Moves pending output to the end of `to`.
  void to_client(std::string& to);

 private:
  TlsStream(std::shared_ptr<const TlsContext>, void* stream, void* in, void* out);
  State state_of(int result);

  std::shared_ptr<const TlsContext> context_;
  void *stream_, *in_, *out_;
};

}  // namespace gimbal::http
