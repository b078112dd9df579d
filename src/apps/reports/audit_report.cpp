#include "apps/reports/verdict_reports.h"

#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/json.h"

namespace gimbal {

using Verdict = AuditResult::Verdict;

int exit_code(Verdict v) { return v == Verdict::Same ? kDone : v == Verdict::Differs ? kFailed : kBadModel; }

std::string audit_text(const Audited& item) {
  const AuditResult& r = **item.result;
  const std::string by = item.signature == Audited::Signature::Valid
                             ? format("; signed by {}", item.certificate->signature.key)
                             : "";
  if (r.verdict == Verdict::Same)
    return format("same: {} {} of logits and the tokens chosen from them, checked in {:.2f} s{}", r.rows,
                  r.rows == 1 ? "row" : "rows", item.seconds, by);
  return format("{}{}: {}\n  expected {}\n  found    {}",
                r.verdict == Verdict::Differs ? "differs" : "cannot tell",
                r.position >= 0 ? format(" at token {} of the answer", r.position) : "", r.explanation,
                printable(r.expected), printable(r.found));
}

Json audit_json(const Audited& item) {
  const AuditResult& r = **item.result;
  Json j{{"certificate", item.name}, {"verdict", name_of(r.verdict)},
         {"rows", r.rows},           {"signature", name_of(item.signature)},
         {"seconds", item.seconds},  {"compute_seconds", item.compute_seconds}};
  if (item.signature != Audited::Signature::None) j["key"] = item.certificate->signature.key;
  if (r.verdict == Verdict::Same) return j;
  j["subject"] = name_of(r.subject);
  if (r.position >= 0) j["position"] = r.position;
  j["expected"] = r.expected, j["found"] = r.found, j["explanation"] = r.explanation;
  return j;
}

}  // namespace gimbal
