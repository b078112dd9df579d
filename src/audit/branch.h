// Branches of a certificate's answer: texts that keep its first tokens and continue otherwise. A branch has a
// certificate of its own, which names its origin and is audited without it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "audit/certificate.h"
#include "runtime/generate.h"

namespace gimbal {

struct Branch {
  Certificate::Origin origin;
  std::vector<Token> prompt;
  std::vector<Token> kept;  // the first tokens of the branch's answer
  TextSettings text;        // those of the origin, but for the seed
  std::string grammar;

  // For generate(): the settings, with the certificate's digests and the kept tokens.
  GenerateSettings settings(Constraint* constraint = nullptr) const;
};

// Keeps the first `tokens` tokens of the answer, and chooses the next ones with another seed. `prompt`: the
// certificate's, or the caller's for a private one. Errors: Usage if the answer has fewer tokens.
Result<Branch> branch_with_seed(const Certificate& origin, std::span<const Token> prompt, int tokens,
                                uint64_t seed);
// Puts `message` behind the first `tokens` tokens of the answer; all of it is the prompt of a new answer,
// with the same settings. Errors: as above; Usage for an empty message.
Result<Branch> branch_with_message(const Certificate& origin, std::span<const Token> prompt, int tokens,
                                   std::span<const Token> message);

// Of a branch of `origin`, as generate() has written it. Private if `origin` is. The caller fills in `made`.
Certificate certificate_of(const Branch&, const Certificate& origin, const Generated&);

}  // namespace gimbal
