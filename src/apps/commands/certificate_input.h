// What commands need to compute certificates' answers again: the files, and options for everything that a
// certificate lacks.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/options/options.h"
#include "audit/audit_many.h"

namespace gimbal {

class CertificateInput {
 public:
  // --model, --tokens, --key, the devices, --lora and --kernel-config.
  void declare(Arguments&);
  std::optional<std::string>& model() { return model_; }  // for a positional MODEL
  // A plan that opens models and fetches missing ones. This object outlives it. Errors: Usage for options
  // that are invalid.
  Result<AuditPlan> plan(bool quiet);
  // The error of a certificate, in terms of these options.
  Error worded(Error) const;

 private:
  std::optional<std::string> model_, tokens_, key_;
  CommonOptions engine_;
};

// Adds the certificates of a file: one, or, of a server's receipt, those of an answer's choices. A file that
// cannot be read, or that holds no certificate, gets its error as result.
void read_certificates(const std::string& file, std::vector<Audited>& to);
// A note for signatures that could not be checked.
void note_unchecked_signatures(const std::vector<Audited>&);

}  // namespace gimbal
