// Certificates of answers (docs/audit.md): requested by a header, by the field "certificate" or for all
// answers, and kept in the answer's receipt.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "audit/certificate.h"
#include "base/json_fwd.h"
#include "server/api/error.h"
#include "server/model.h"

namespace gimbal::api {

enum class CertificateWish : uint8_t { No, Yes, Private };  // Private: without the prompt's tokens

// The server's own settings.
struct CertificatePolicy {
  CertificateWish all = CertificateWish::No;  // for answers whose requests want none
  std::string key_file = {};                  // signs all certificates; empty: they are not signed
};

inline constexpr const char* kCertificateHeader = "x-gimbal-certificate";  // true, private or false
inline constexpr const char* kReceiptHeader = "x-gimbal-receipt";          // of an answer: its receipt's id

// Checks the header. Refused: another word.
Refused wrong_certificate_header(const http::Request&);
// The wish in the header, else in the field; nothing: the request has neither.
std::optional<CertificateWish> certificate_wish(const http::Request&, const Json& body);

// One choice of an answer, while it is written.
class Certified {
 public:
  // `model`: the digest of its file. Keeps the parts of the request that the certificate needs.
  Certified(const ServedModel&, std::string model, const GenerationRequest&);
  void add(const TokenEvent& t) { tokens_.push_back(t.token), rows_.push_back(t.row); }
  struct Making {
    const std::string& program;  // "gimbal 0.5.0"
    double prompt_seconds, seconds;
    bool is_private;
    const std::string& key_file;  // CertificatePolicy
  };
  // Errors: those of sign().
  Result<Json> certificate(const ServedModel&, const GenerationEnd&, const Making&) const;

 private:
  Certificate::Model model_;
  Certificate::Settings settings_;
  std::vector<Token> prompt_, tokens_;
  TextSettings text_;
  std::string grammar_;
  std::vector<std::string> rows_;
};

// Why a model's answers cannot have certificates; nothing: they can.
Refused no_certificate(const ServedModel&, const std::string& digest);

}  // namespace gimbal::api
