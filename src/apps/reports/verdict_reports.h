// Reports that end in a verdict, for people and as JSON: audits of answers, cross-validations, analyses of
// libraries.
#pragma once
#include <string>
#include <vector>

#include "audit/audit_many.h"
#include "base/json_fwd.h"
#include "crossval/crossval.h"
#include "inspection/verdict.h"

namespace gimbal {

// Reports of audits: for people, and for --json.
int exit_code(AuditResult::Verdict);
// Of a certificate with a result that is no error: one line, or three for a difference; without a newline.
std::string audit_text(const Audited&);
// Keys: see docs/cli.md.
Json audit_json(const Audited&);

// What `gimbal crossval` prints, and its exit code.

// 0 the same or within rounding, 1 different, 3 cannot compare.
int exit_code(crossval::Verdict);
// `layers`: a line for each layer.
std::string crossval_text(const crossval::CrossvalReport&, bool layers);
Json crossval_json(const crossval::CrossvalReport&);

// The analysis of a library, for people and as JSON.
struct InspectionView {
  bool all_symbols = false;  // also list every exported and undefined symbol
};

// Begins with the text of the dual-backend roadmap: "Library: NAME", then a block per family of symbols. Then
// the file, its GPU and CPU code.
std::string inspection_text(const Inspection&, const LibraryVerdict&, InspectionView);
Json inspection_json(const Inspection&, const LibraryVerdict&, InspectionView);

// One line per file: path, summary, CPU instructions; or the reason why it cannot be read.
std::string libraries_text(const std::vector<std::string>& paths);
Json libraries_json(const std::vector<std::string>& paths);

}  // namespace gimbal
