// Whether a C++ inference library can be used, before it is: all failures at once, each with the expected and
// the found value and a remedy. The library is loaded in a child process only.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "inspection/inspection.h"

namespace gimbal {

// The functions that a user of a library calls.
struct LibraryInterface {
  std::string name;  // "libllama"
  // Each by its names in all generations, the newest first: one of them must be exported.
  std::vector<std::vector<std::string>> functions;
  // Releases that changed the interface, the newest first: the first one whose function is exported counts.
  struct Generation {
    std::string name, exports;
  };
  std::vector<Generation> generations;  // empty: there is one
};

// The C shim of bitnet.cpp, and libllama.
const LibraryInterface& bitnet_interface();
const LibraryInterface& llama_interface();

struct LibraryDemand {
  const LibraryInterface* interface = nullptr;
  std::string gpu;   // "CUDA": this library, or one beside it, must have code for it; empty: none is needed
  bool load = true;  // try to load it
  std::chrono::milliseconds limit{10000};
  std::string cpu_flags = {};  // in the words of /proc/cpuinfo; empty: those of this CPU
};

struct LibraryFailure {
  std::string check;  // "file", "format", "machine", "functions", "generation", "gpu", "needed", "load"
  std::string message;
  std::string expected, found, remedy;
};

struct LibraryValidation {
  std::string path;
  std::string generation;  // of the interface; empty if unknown or if there is one
  std::vector<LibraryFailure> failures;
  std::vector<std::string> warnings;  // instructions that this CPU lacks
  bool usable() const { return failures.empty(); }
};

LibraryValidation validate_library(const std::string& path, const LibraryDemand&);

// The failures as one error: Unsupported, or NotFound without a file. For unusable libraries.
Error error_of(const LibraryValidation&);

}  // namespace gimbal
