// The analysis of a library, for people and as JSON.
#pragma once
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "inspection/verdict.h"

namespace gimbal {

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
