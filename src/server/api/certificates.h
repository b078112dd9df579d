// Certificates of answers (docs/audit.md): requested by the field "certificate", and kept in the answer's
// receipt.
#pragma once
#include <string>
#include <vector>

#include "audit/certificate.h"
#include "base/json_fwd.h"
#include "server/api/error.h"
#include "server/model.h"

namespace gimbal::api {

// One choice of an answer, while it is written.
class Certified {
 public:
  // `model`: the digest of its file. Keeps the parts of the request that the certificate needs.
  Certified(const ServedModel&, std::string model, const GenerationRequest&);
  void add(const TokenTold& t) { tokens_.push_back(t.token), rows_.push_back(t.row); }
  // `program`: "gimbal 0.5.0"; seconds of the prompt and of the answer.
  Json certificate(const ServedModel&, const GenerationEnd&, const std::string& program,
                   double prompt_seconds, double seconds) const;

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
