// Checks certificates: computes the answers' logits again, in steps as for a prompt, with the answers' tokens
// as drafts that must all be right.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "audit/certificate.h"
#include "runtime/device_lost.h"

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
    Settings,
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

struct AuditJob {
  const Certificate* certificate;
  std::vector<Token> prompt = {};  // of a certificate without its prompt
};

struct AuditOptions {
  // Check only this many positions, drawn by the auditor; none: all. Where the sampler remembers all choices
  // before, all positions up to the last drawn one are checked.
  std::optional<int> sample = {};
  uint64_t seed = 0;                                             // of the draw
  std::function<void(size_t done, size_t total)> progress = {};  // in tokens of all answers
  // Check only the first tokens of the answer: this many, at most all.
  std::optional<int> until = {};
  // Of one answer: receives its text, as far as it is checked: complete UTF-8, no part of a stop string.
  std::function<void(std::string_view)> text = {};
};

// Recomputes the answers on free sequences of a model that was loaded with set_audit_options(); rows of
// several answers share a step. A result for each job, in order. Its errors: those of the model; of a
// grammar; of a prompt that does not fit; Usage for a private prompt that the job lacks. `lost`: see
// runtime/device_lost.h; afterwards the answers in progress are computed again on the other device.
std::vector<Result<AuditResult>> audit(std::span<const AuditJob>, Model&, const Tokenizer&,
                                       const AuditOptions& = {}, const OnDeviceLost& lost = {});

// Changes `options` so that the model is loaded as these certificates say, with memory for several answers
// at once. The certificates have the same settings.
Status set_audit_options(std::span<const AuditJob>, RunOptions& options);

}  // namespace gimbal
