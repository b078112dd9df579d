// The contents of a library, read from its file and never run: libllama, ggml and their kind, on every
// system's file formats (ELF, Mach-O, PE, static archives).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gimbal/error.h"

namespace gimbal::v1 {

// Symbols of one family, and other evidence of it.
struct LibraryFamily {
  std::string key;                     // "llama", "ggml", "bitnet", "cuda", "quantization", ...
  uint64_t symbols = 0;                // exported or undefined, with names of this family
  std::vector<std::string> names;      // at most 100 of them
  std::vector<std::string> libraries;  // that it needs or opens
};

// One machine's code: a fat file has several.
struct LibraryMachine {
  std::string format, machine, build_id;  // "ELF", "x86-64", hexadecimal
  std::vector<std::string> needed;
  uint64_t exported = 0, undefined = 0;   // symbols
  std::vector<std::string> gpu_targets;   // of embedded code: "sm_90", "gfx942"
  std::vector<std::string> instructions;  // families that its code contains: "AVX2"; it may choose among them
};

struct LibraryContents {
  std::string path, summary;         // "llama, ggml; CPU only"
  std::vector<std::string> gpus;     // backends that it has code or calls for: "CUDA"; empty: the CPU alone
  std::vector<std::string> kernels;  // quantization kernels: "I2S_QK256 (CPU)"
  std::vector<LibraryFamily> families;  // those that were found
  std::vector<LibraryMachine> machines;
};

// Errors: NotFound; Malformed for a file that is no library, truncated or damaged.
Result<LibraryContents> library_contents(const std::string& path);

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
