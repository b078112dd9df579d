// The options that write a certificate of an answer (docs/audit.md).
#pragma once
#include "apps/options/options.h"
#include "audit/certificate.h"
#include "engine/engine.h"
#include "engine/reports.h"
#include "runtime/generate.h"

namespace gimbal {

class CertificateOptions {
 public:
  void declare(Arguments&);
  bool given() const { return file_.has_value(); }
  // Errors: Usage for options that need another one.
  Status check() const;
  // Writes the certificate of a complete answer. Errors: those of the model's file, the key and the system.
  Status write(const LoadedModel&, const std::vector<Lora>& adapters, std::span<const Token> prompt,
               const GenerateSettings&, const std::string& grammar, const Generated&) const;

 private:
  std::optional<std::string> file_, key_;
  bool private_ = false;
};

}  // namespace gimbal
