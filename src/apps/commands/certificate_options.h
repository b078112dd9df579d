// The options that write a certificate of an answer (docs/audit.md).
#pragma once
#include "apps/options/options.h"
#include "audit/certificate.h"
#include "engine/engine.h"
#include "engine/reports.h"
#include "runtime/generate.h"
#include "server/api/services.h"

namespace gimbal {

class CertificateOptions {
 public:
  void declare(Arguments&, const char* names = "--certificate");
  bool given() const { return file_.has_value(); }
  // Errors: Usage for options that need another one.
  Status check() const;
  // Writes the certificate of a complete answer. Errors: those of the model's file, the key and the system.
  Status write(const LoadedModel&, const std::vector<Lora>& adapters, std::span<const Token> prompt,
               const GenerateSettings&, const std::string& grammar, const Generated&) const;
  // The same for a certificate that lacks `made` only.
  Status write(Certificate, const LoadedModel&, const Generated&) const;

 private:
  std::optional<std::string> file_, key_;
  bool private_ = false;
};

// The options of a server that writes certificates of all answers.
class ServedCertificateOptions {
 public:
  void declare(Arguments&);
  // Before requests are answered. Errors: those of the folder; of the key: Usage, and Unsupported without
  // OpenSSL.
  Status apply(api::Services&) const;

 private:
  bool all_ = false, private_ = false;
  std::optional<std::string> folder_, key_;
};

}  // namespace gimbal
