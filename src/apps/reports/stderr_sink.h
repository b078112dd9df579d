// Messages about the engine on stderr and in reports: fallbacks with reasons, progress, recovery.
#pragma once
#include <string>
#include <vector>

#include "apps/toolkit/exit_code.h"
#include "engine/engine.h"

namespace gimbal {

std::string sentence(const Rejection&);  // "cuda: why not (what to do)"
std::string sentence(const Fallback&);   // as in --json: without the replacement
std::vector<std::string> sentences(const std::vector<Fallback>&);
std::vector<std::string> sentences(const std::vector<Rejection>&);

// Why this device was chosen; in brackets, why earlier ones were not.
std::string reason_of(const OpenedDevice&);

// Prints fallbacks on stderr; unless `quiet`, also notes, and progress on a terminal.
EventSink stderr_sink(bool quiet);

}  // namespace gimbal
