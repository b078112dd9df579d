// Checks a certificate: computes the answer's logits again, in steps as for a prompt, with the answer's
// tokens as drafts that must all be right.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "audit/certificate.h"
#include "runtime/session.h"

namespace gimbal {

struct AuditResult {
  enum class Verdict : uint8_t { Same, Differs, CannotTell };
  // The first thing that differs, or the reason why nothing can be said.
  enum class Subject : uint8_t {
    Nothing,
    Arithmetic,
    FastKernels,
    Model,
    Adapters,
    Prompt,
    Signature,
    Logits,
    Token,
    End,
    Chain
  };

  Verdict verdict = Verdict::Same;
  Subject subject = Subject::Nothing;
  int position = -1;  // of the answer's token or its row of logits; -1: of none
  std::string expected = {}, found = {}, explanation = {};
  int rows = 0;  // of logits that were compared
};
const char* name_of(AuditResult::Verdict);  // "same", "differs", "cannot-tell"
const char* name_of(AuditResult::Subject);  // "nothing", "arithmetic", ...

// What can be said before the model is loaded: arithmetic, kernels, and the model's identity. nullopt: go on.
std::optional<AuditResult> audit_identity(const Certificate&, const Certificate::Model& model);

struct AuditOptions {
  std::vector<Token> prompt = {};  // of a certificate without its prompt
  std::optional<int> sample = {};  // check only this many positions, drawn by the auditor; none: all
  uint64_t seed = 0;               // of the draw
  std::function<void(size_t done, size_t total)> progress = {};  // in tokens
};

// Recomputes the answer on an empty session of a model that was loaded with audit_options(). Errors: those of
// the session, of a grammar, of a prompt that does not fit; Usage for a private prompt that `options` lacks.
Result<AuditResult> audit(const Certificate&, Session&, const Tokenizer&, const AuditOptions& = {});

// Changes `options` so that the model is loaded as the certificate says.
Status set_audit_options(const Certificate&, RunOptions& options);

}  // namespace gimbal
