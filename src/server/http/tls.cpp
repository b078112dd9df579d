#include "server/http/tls.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "base/format.h"
#include "base/text.h"
#include "device/loader_lock.h"

namespace gimbal::http {
namespace {

// The part of OpenSSL 3's headers that is used here; its types are only used as pointers.
using PasswordCallback = int (*)(char*, int, int, void*);
#define GIMBAL_OPENSSL(F)                                           \
  F(const void*, TLS_server_method, ())                             \
  F(void*, SSL_CTX_new, (const void*))                              \
  F(void, SSL_CTX_free, (void*))                                    \
  F(long, SSL_CTX_ctrl, (void*, int, long, void*))                  \
  F(uint64_t, SSL_CTX_set_options, (void*, uint64_t))               \
  F(void, SSL_CTX_set_default_passwd_cb, (void*, PasswordCallback)) \
  F(int, SSL_CTX_use_certificate_chain_file, (void*, const char*))  \
  F(int, SSL_CTX_use_PrivateKey_file, (void*, const char*, int))    \
  F(int, SSL_CTX_check_private_key, (const void*))                  \
  F(void*, SSL_new, (void*))                                        \
  F(void, SSL_free, (void*))                                        \
  F(void, SSL_set_bio, (void*, void*, void*))                       \
  F(void, SSL_set_accept_state, (void*))                            \
  F(int, SSL_read, (void*, void*, int))                             \
  F(int, SSL_write, (void*, const void*, int))                      \
  F(int, SSL_shutdown, (void*))                                     \
  F(int, SSL_get_error, (const void*, int))                         \
  F(const void*, BIO_s_mem, ())                                     \
  F(void*, BIO_new, (const void*))                                  \
  F(int, BIO_free, (void*))                                         \
  F(int, BIO_read, (void*, void*, int))                             \
  F(int, BIO_write, (void*, const void*, int))                      \
  F(unsigned long, ERR_get_error, ())                               \
  F(const char*, ERR_reason_error_string, (unsigned long))          \
  F(void, ERR_clear_error, ())

struct OpenSsl {
#define GIMBAL_MEMBER(result, name, arguments) result(*name) arguments;
  GIMBAL_OPENSSL(GIMBAL_MEMBER)
#undef GIMBAL_MEMBER
};

constexpr int kPem = 1, kErrorWantRead = 2, kErrorZeroReturn = 6;
constexpr int kSetMode = 33, kSetSessionCache = 44, kSetLowestVersion = 123;
constexpr long kTls12 = 0x0303;
constexpr long kReleaseBuffers = 16;  // of connections that are silent
constexpr uint64_t kNoRenegotiation = 1 << 30;

// The functions, or the reason for their absence. Loaded once.
Result<const OpenSsl*> openssl() {
  static OpenSsl f{};
  static const std::string missing = []() -> std::string {
    const LoaderLock lock;
    void* library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "libssl.so.3 cannot be loaded";
    std::string absent;
    // The functions of libcrypto are found through libssl, which needs it.
    const auto find = [&](auto& function, const char* name) {
      void* address = dlsym(library, name);
      if (!address) absent = format("libssl.so.3 lacks the function {}", name);
      std::memcpy(&function, &address, sizeof address);
    };
#define GIMBAL_FIND(result, name, arguments) find(f.name, #name);
    GIMBAL_OPENSSL(GIMBAL_FIND)
#undef GIMBAL_FIND
    return absent;
  }();
  if (missing.empty()) return &f;
  return Error{Code::Unsupported, format("TLS needs OpenSSL 3: {}", missing),
               "install it (Debian and Ubuntu: libssl3), or let a proxy speak TLS", "no-tls-library"};
}

const OpenSsl& ssl() { return **openssl(); }  // already loaded

Error wrong_file(const char* field, const std::string& path, const std::string& why, const char* remedy) {
  return {Code::Usage, format("'{}': {}: {}", field, quoted(path), why), remedy, "", field, path};
}

// The first reason is the cause.
std::string openssl_says() {
  const unsigned long code = ssl().ERR_get_error();
  const char* text = code ? ssl().ERR_reason_error_string(code) : nullptr;
  ssl().ERR_clear_error();
  return text ? text : "it is not in PEM format";
}

int no_password(char*, int, int, void*) { return 0; }

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const std::string& certificate,
                                                           const std::string& key) {
  auto there = openssl();
  if (!there) return there.error();
  const OpenSsl& f = **there;
  for (const auto& [field, path] : {std::pair("tls_cert", &certificate), {"tls_key", &key}})
    if (access(path->c_str(), R_OK) != 0)
      return wrong_file(field, *path, std::strerror(errno), "give a PEM file that can be read");
  void* c = f.SSL_CTX_new(f.TLS_server_method());
  if (!c) return Error{Code::Failed, "OpenSSL created no context for TLS", ""};
  std::shared_ptr<const TlsContext> context(new TlsContext(c));
  f.SSL_CTX_ctrl(c, kSetLowestVersion, kTls12, nullptr);
  f.SSL_CTX_ctrl(c, kSetMode, kReleaseBuffers, nullptr);
  f.SSL_CTX_ctrl(c, kSetSessionCache, 0, nullptr);
  f.SSL_CTX_set_options(c, kNoRenegotiation);
  f.SSL_CTX_set_default_passwd_cb(c, no_password);
  if (f.SSL_CTX_use_certificate_chain_file(c, certificate.c_str()) != 1)
    return wrong_file("tls_cert", certificate, openssl_says(),
                      "give a PEM file: the server's certificate first, then its chain");
  if (f.SSL_CTX_use_PrivateKey_file(c, key.c_str(), kPem) != 1 || f.SSL_CTX_check_private_key(c) != 1)
    return wrong_file("tls_key", key, openssl_says(),
                      "give the PEM file of this certificate's key, without a password");
  return context;
}

TlsContext::~TlsContext() { ssl().SSL_CTX_free(context_); }

std::unique_ptr<TlsStream> TlsStream::create(std::shared_ptr<const TlsContext> context) {
  const OpenSsl& f = ssl();
  void* stream = f.SSL_new(context->context_);
  void* in = f.BIO_new(f.BIO_s_mem());
  void* out = f.BIO_new(f.BIO_s_mem());
  if (!stream || !in || !out) {
    if (stream) f.SSL_free(stream);
    for (void* bio : {in, out})
      if (bio) f.BIO_free(bio);
    return nullptr;
  }
  return std::unique_ptr<TlsStream>(new TlsStream(std::move(context), stream, in, out));
}

TlsStream::TlsStream(std::shared_ptr<const TlsContext> context, void* stream, void* in, void* out)
    : context_(std::move(context)), stream_(stream), in_(in), out_(out) {
  ssl().SSL_set_bio(stream, in, out);  // which owns them from here on
  ssl().SSL_set_accept_state(stream);
}

TlsStream::~TlsStream() { ssl().SSL_free(stream_); }

TlsStream::State TlsStream::state_of(int result) {
  const int error = ssl().SSL_get_error(stream_, result);
  if (error == kErrorWantRead) return State::Open;
  ssl().ERR_clear_error();  // the queue is the thread's, not the connection's
  return error == kErrorZeroReturn ? State::Ended : State::Failed;
}

TlsStream::State TlsStream::received(std::string_view bytes, std::string& text) {
  const OpenSsl& f = ssl();
  if (!bytes.empty() && f.BIO_write(in_, bytes.data(), int(bytes.size())) != int(bytes.size()))
    return State::Failed;
  char piece[16384];
  for (;;) {
    const int n = f.SSL_read(stream_, piece, sizeof piece);
    if (n <= 0) return state_of(n);
    text.append(piece, size_t(n));
  }
}

TlsStream::State TlsStream::say(std::string_view text) {
  while (!text.empty()) {
    const int n = ssl().SSL_write(stream_, text.data(), int(std::min<size_t>(text.size(), 1 << 14)));
    if (n <= 0) return state_of(n), State::Failed;  // memory takes all: it never has to wait
    text.remove_prefix(size_t(n));
  }
  return State::Open;
}

void TlsStream::say_end() {
  ssl().SSL_shutdown(stream_);
  ssl().ERR_clear_error();
}

void TlsStream::to_client(std::string& to) {
  char piece[16384];
  for (int n; (n = ssl().BIO_read(out_, piece, sizeof piece)) > 0;) to.append(piece, size_t(n));
}

}  // namespace gimbal::http
