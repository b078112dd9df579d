// Reports of audits: for people, and for --json.
#pragma once
#include <string>

#include "audit/audit_many.h"
#include "base/json_fwd.h"

namespace gimbal {

int exit_code(AuditResult::Verdict);
// Of a certificate with a result that is no error: one line, or three for a difference; without a newline.
std::string audit_text(const Audited&);
// Keys: see docs/cli.md.
Json audit_json(const Audited&);

}  // namespace gimbal
