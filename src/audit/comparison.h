// Compares recomputed rows with those of a certificate, and names the first difference.
#pragma once
#include "audit/audit.h"

namespace gimbal {

AuditResult differs(AuditResult::Subject, int position, std::string expected, std::string found,
                    std::string explanation);

class Comparison {
 public:
  explicit Comparison(const Certificate& c)  // outlives it
      : certificate_(&c) {}

  // The row of the answer's token `i`, or of its end, and the token picked from it; -1: a stop token. False:
  // they differ, or this row is none of the answer's.
  bool row(size_t i, std::string_view digest, Token picked);
  // With these settings the answer has only `tokens` tokens.
  void ends_early(size_t tokens, Finish);
  // Of all rows.
  void chain(const std::string& found);

  const AuditResult& result() const { return result_; }

 private:
  void set(AuditResult);  // keeps the number of rows

  const Certificate* certificate_;
  AuditResult result_;
};

}  // namespace gimbal
