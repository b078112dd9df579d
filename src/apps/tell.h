// What the engine did, told on stderr and in reports: fallbacks and their reasons, progress, recovery.
#pragma once
#include <string>
#include <vector>

#include "apps/shared/wording.h"
#include "engine/engine.h"

namespace gimbal {

std::string sentence(const Rejection&);  // "cuda: why not (what to do)"
std::string sentence(const Fallback&);   // as in --json: without what is used in its place
std::vector<std::string> sentences(const std::vector<Fallback>&);
std::vector<std::string> sentences(const std::vector<Rejection>&);

// Why this device; in brackets, why not those before it.
std::string reason_of(const OpenedDevice&);

// Tells fallbacks on stderr; unless `quiet`, also notes, and progress on a terminal.
EventSink tell_on_stderr(bool quiet);

}  // namespace gimbal
