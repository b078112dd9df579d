#include "audit/certificate.h"

#include <dlfcn.h>

#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "device/loader_lock.h"

namespace gimbal {
namespace {

// The part of OpenSSL 3's headers that is used here; its types are only used as pointers.
#define GIMBAL_CRYPTO(F)                                                                 \
  F(void*, BIO_new_mem_buf, (const void*, int))                                          \
  F(int, BIO_free, (void*))                                                              \
  F(void*, PEM_read_bio_PrivateKey, (void*, void**, void*, void*))                       \
  F(void*, EVP_PKEY_new_raw_public_key, (int, void*, const unsigned char*, size_t))      \
  F(int, EVP_PKEY_get_raw_public_key, (const void*, unsigned char*, size_t*))            \
  F(int, EVP_PKEY_get_id, (const void*))                                                 \
  F(void, EVP_PKEY_free, (void*))                                                        \
  F(void*, EVP_MD_CTX_new, ())                                                           \
  F(void, EVP_MD_CTX_free, (void*))                                                      \
  F(int, EVP_DigestSignInit, (void*, void**, const void*, void*, void*))                 \
  F(int, EVP_DigestSign, (void*, unsigned char*, size_t*, const unsigned char*, size_t)) \
  F(int, EVP_DigestVerifyInit, (void*, void**, const void*, void*, void*))               \
  F(int, EVP_DigestVerify, (void*, const unsigned char*, size_t, const unsigned char*, size_t))

struct Crypto {
#define GIMBAL_MEMBER(result, name, arguments) result(*name) arguments;
  GIMBAL_CRYPTO(GIMBAL_MEMBER)
#undef GIMBAL_MEMBER
};

constexpr int kEd25519 = 1087;  // NID_ED25519
constexpr size_t kKeyBytes = 32, kSignatureBytes = 64;

Result<const Crypto*> crypto() {
  static Crypto f{};
  static const std::string missing = []() -> std::string {
    const LoaderLock lock;
    void* library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "libcrypto.so.3 cannot be loaded";
    std::string absent;
    const auto find = [&](auto& function, const char* name) {
      void* address = dlsym(library, name);
      if (!address) absent = format("libcrypto.so.3 has no function {}", name);
      std::memcpy(&function, &address, sizeof address);
    };
#define GIMBAL_FIND(result, name, arguments) find(f.name, #name);
    GIMBAL_CRYPTO(GIMBAL_FIND)
#undef GIMBAL_FIND
    return absent;
  }();
  if (missing.empty()) return &f;
  return Error{Code::Unsupported, format("signatures need OpenSSL 3: {}", missing),
               "install it (Debian and Ubuntu: libssl3)"};
}

std::string hex(std::span<const unsigned char> bytes) {
  std::string out;
  for (unsigned char b : bytes) out += format("{:02x}", b);
  return out;
}

// Empty for a text that is not so many bytes in hexadecimal.
std::vector<unsigned char> unhex(std::string_view text, size_t bytes) {
  if (text.size() != 2 * bytes || text.find_first_not_of("0123456789abcdef") != text.npos) return {};
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<unsigned char> out(bytes);
  for (size_t i = 0; i < bytes; i++)
    out[i] = static_cast<unsigned char>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return out;
}

using Key = std::unique_ptr<void, void (*)(void*)>;

}  // namespace

Status sign(Certificate& c, const std::string& key_file) {
  auto there = crypto();
  if (!there) return there.error();
  const Crypto& f = **there;
  auto pem = read_file(key_file, 1 << 16);
  if (!pem) return pem.error();
  void* memory = f.BIO_new_mem_buf(pem->data(), int(pem->size()));
  const Key key(memory ? f.PEM_read_bio_PrivateKey(memory, nullptr, nullptr, nullptr) : nullptr,
                f.EVP_PKEY_free);
  if (memory) f.BIO_free(memory);
  if (!key || f.EVP_PKEY_get_id(key.get()) != kEd25519)
    return Error{
        Code::Usage,
        format("{} holds no private key of the kind Ed25519, without a password", gimbal::quoted(key_file)),
        "make one: openssl genpkey -algorithm ed25519 -out key.pem"};
  const std::string text = canonical_text(c);
  unsigned char its[kKeyBytes], value[kSignatureBytes];
  size_t key_bytes = sizeof its, bytes = sizeof value;
  const Key context(f.EVP_MD_CTX_new(), f.EVP_MD_CTX_free);
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  if (!context || f.EVP_PKEY_get_raw_public_key(key.get(), its, &key_bytes) != 1 || key_bytes != sizeof its ||
      f.EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      f.EVP_DigestSign(context.get(), value, &bytes, data, text.size()) != 1 || bytes != sizeof value)
    return Error{Code::Failed, "OpenSSL could not sign the certificate", ""};
  c.signature = {hex(its), hex(value)};
  return Done{};
}

Result<bool> signature_fits(const Certificate& c) {
  auto there = crypto();
  if (!there) return there.error();
  const Crypto& f = **there;
  const auto its = unhex(c.signature.key, kKeyBytes), value = unhex(c.signature.value, kSignatureBytes);
  if (its.empty() || value.empty()) return false;
  const Key key(f.EVP_PKEY_new_raw_public_key(kEd25519, nullptr, its.data(), its.size()), f.EVP_PKEY_free);
  const Key context(f.EVP_MD_CTX_new(), f.EVP_MD_CTX_free);
  const std::string text = canonical_text(c);
  return key && context && f.EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         f.EVP_DigestVerify(context.get(), value.data(), value.size(),
                            reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
}

}  // namespace gimbal
