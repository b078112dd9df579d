// The contents of a library, read from its file and never run: symbols, needed libraries, embedded GPU code
// and CPU instructions. Reads ELF, Mach-O, PE, COFF and static archives on every system.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

// Names of symbols in one block of memory.
class NameList {
 public:
  void add(std::string_view name);
  void skip(size_t names = 1) { skipped_ += names; }  // counted, but not kept
  size_t count() const { return ends_.size() + skipped_; }
  size_t kept() const { return ends_.size(); }
  size_t skipped() const { return skipped_; }
  size_t bytes() const { return text_.size() + ends_.size() * sizeof ends_[0]; }
  std::string_view operator[](size_t i) const;
  // Sorts the kept names, without duplicates.
  void sort();
  // Removes the names of `other`; both must be sorted.
  void remove(const NameList& other);

 private:
  std::string text_;
  std::vector<uint32_t> ends_;
  size_t skipped_ = 0;
};

// Code of one kind for GPUs.
struct EmbeddedGpuCode {
  std::string kind;                  // "NVIDIA fatbin", "AMD code object", "SPIR-V", "Metal library", "PTX"
  std::vector<std::string> targets;  // "sm_90", "compute_90", "gfx90a"; sorted; empty if there are none
  uint64_t pieces = 0, bytes = 0;
};

// Instructions beyond the machine's basic ones. Presence does not mean use: a library may choose at run time.
struct CpuInstructions {
  std::string not_scanned;          // why nothing was scanned; empty: it was
  uint64_t bytes = 0, scanned = 0;  // of code; fewer scanned: samples, so more families may exist
  uint64_t undecoded = 0;           // bytes that are no instructions: data between functions
  struct Family {
    std::string name;  // "AVX2"
    uint64_t count = 0;
    bool doubtful = false;  // so few that they may be data which looks like instructions
  };
  std::vector<Family> families;  // those that were found, from the oldest
};

struct BinaryImage {
  std::string format;   // "ELF", "Mach-O", "PE", "COFF"
  std::string type;     // "shared library", "program", "object", "static archive", ...
  std::string machine;  // "x86-64"
  int bits = 0;
  bool big_endian = false;
  std::string name;                         // soname, install name, or name in the export table
  std::vector<std::string> needed;          // libraries
  std::vector<std::string> opens;           // drivers that its data names: it may open them when it runs
  std::vector<std::string> rpath, runpath;  // search paths; Mach-O has rpath alone
  std::string build_id;                     // hexadecimal: GNU build id, Mach-O UUID, PDB GUID and age
  std::string system;                       // "macOS 11.0 or newer"; empty if the file has no such field
  bool stripped = false;                    // without the table of local symbols
  uint64_t members = 0;                     // of an archive
  NameList exported, undefined;  // sorted; without the underscore that Mach-O puts in front of C names
  std::vector<EmbeddedGpuCode> gpu_code;
  CpuInstructions cpu;
  std::vector<std::string> notes;  // limits that were reached, unreadable parts
};

struct Inspection {
  std::string path;
  uint64_t bytes = 0;
  std::string container;  // "", "fat Mach-O", "GNU archive", "BSD archive", "COFF archive", "thin archive"
  std::vector<BinaryImage> images;  // at least one; several for a fat file or an archive of several machines
};

// Upper bounds of work and memory for one file.
struct InspectionLimits {
  uint64_t name_bytes = 10 << 20;   // kept names of symbols and libraries
  uint64_t records = 4'000'000;     // entries of tables: symbols, sections, members, ...
  uint64_t code_bytes = 16 << 20;   // scanned for CPU instructions
  uint64_t data_bytes = 512 << 20;  // searched for GPU code
};

// Errors: NotFound; Malformed (no library, truncated, or contradictory), each with the file's name; Failed
// with the system's reason.
Result<Inspection> inspect_library(const std::string& path, const InspectionLimits& = {});
// The same for a file in memory; `name` stands for its path.
Result<Inspection> inspect_library(Bytes file, const std::string& name, const InspectionLimits& = {});

}  // namespace gimbal
