// The conclusions from the contents of a library.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "inspection/inspection.h"
#include "inspection/symbol_families.h"

namespace gimbal {

// Lists keep half a megabyte of names, and count the others.
struct FamilyFinding {
  NameList names;       // of symbols, exported or undefined, over all images
  NameList plain;       // those that are not mangled: the C interface of a driver or library
  size_t evidence = 0;  // plain names, without functions that only report whether a device is supported
  NameList exported;    // of the plain ones
  std::vector<std::string> libraries;  // needed, or opened when it runs
  std::vector<std::string> code;       // kinds of embedded GPU code
  bool found() const { return names.count() || !libraries.empty() || !code.empty(); }
};

struct QuantizationKernel {
  std::string name;    // the roadmap's: "I2S_QK256", "IQ2S_GGML", "TL1"; otherwise the format's, "Q4_0"
  std::string device;  // "CPU", "CUDA", ...
};

struct LibraryVerdict {
  std::array<FamilyFinding, kSymbolFamilies> families;
  std::vector<QuantizationKernel> kernels;
  // Devices that it has code or calls for, in the order of the families: "CUDA", "HIP". Empty: the CPU alone.
  // Names of C++ are no evidence: headers of frameworks name devices that the library cannot use.
  std::vector<std::string> gpus;
  // Whether it exports functions that load further backends when it runs (ggml_backend_load).
  bool loads_backends = false;

  const FamilyFinding& of(SymbolFamily f) const { return families[size_t(f)]; }
};

LibraryVerdict judge(const Inspection&);

// "llama, ggml; CPU only": the families that it exports, and its devices. "no inference library" if there are
// none.
std::string summary(const LibraryVerdict&);

}  // namespace gimbal
