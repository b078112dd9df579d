// The common part of the readers of file formats: limits, sections, and one function per format.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "inspection/binary_source.h"
#include "inspection/inspection.h"

namespace gimbal {

// The remaining limits while one file is read.
class InspectionBudget {
 public:
  explicit InspectionBudget(const InspectionLimits& l) : left_(l) {}
  // Takes `n` entries of a table. False if the limit is reached: the reader stops there.
  bool records(uint64_t n = 1);
  bool exhausted() const { return exhausted_; }
  // Adds a name, or only counts it once the limit is reached.
  void add(NameList& to, std::string_view name);
  void add(std::vector<std::string>& to, std::string name);
  void give_back_names(uint64_t bytes) { left_.name_bytes += bytes; }
  uint64_t take_code(uint64_t wanted);  // returns the granted bytes
  uint64_t take_data(uint64_t wanted);
  bool names_dropped() const { return names_dropped_; }

 private:
  InspectionLimits left_;
  bool exhausted_ = false, names_dropped_ = false;
};

struct BinarySection {
  std::string name;
  uint64_t offset = 0, size = 0;  // in the view of the image
  bool executable = false;
};

// An image under construction.
struct ImageDraft {
  BinaryImage image;
  ByteView view;
  std::vector<BinarySection> sections;
};

// Each reads one image from a view that starts with its magic number. Errors: Malformed with a predicate to
// append to the file's name.
Status read_elf(ByteView, InspectionBudget&, ImageDraft&);
Status read_macho(ByteView, InspectionBudget&, ImageDraft&);
Status read_pe(ByteView, InspectionBudget&, ImageDraft&);
Status read_coff_object(ByteView, InspectionBudget&, ImageDraft&);
bool is_elf(const ByteView&);
bool is_macho(const ByteView&);
bool is_fat_macho(const ByteView&);
bool is_coff_object(const ByteView&);
// A member of an import library: one symbol of one DLL.
bool is_import_member(const ByteView&);
Status read_import_member(ByteView, InspectionBudget&, ImageDraft&);

// The slices of a fat file.
struct BinarySlice {
  uint64_t offset, size;
};
Result<std::vector<BinarySlice>> fat_slices(const ByteView&, InspectionBudget&);

// Adds one image per machine. Returns the container's name.
bool is_archive(const ByteView&);
Result<std::string> read_archive(const ByteView&, InspectionBudget&, std::vector<BinaryImage>&);

// Fills BinaryImage::gpu_code and BinaryImage::cpu from the sections.
void find_gpu_code(ImageDraft&, InspectionBudget&);
void scan_instructions(ImageDraft&, InspectionBudget&);

void add_gpu_code(std::vector<EmbeddedGpuCode>& to, EmbeddedGpuCode);
void add_families(std::vector<CpuInstructions::Family>& to, const std::vector<CpuInstructions::Family>& from);

Error malformed_image(std::string predicate);
Error truncated_image(const char* part, uint64_t needed, uint64_t size);
std::string hexadecimal(const ByteView&, uint64_t at, size_t bytes);

// What PE images and COFF objects share: the table of sections.
struct CoffSection {
  std::string name;
  uint64_t address, offset, size;  // size: of the bytes in the file
  bool executable;
};

// Errors: Malformed if a section lies outside of the file.
Status read_coff_sections(const ByteView&, uint64_t at, uint32_t count, InspectionBudget&,
                          std::vector<CoffSection>&);

// Names of processors, by the numbers of each file format.
std::string elf_machine(uint16_t number, int bits);
std::string macho_machine(uint32_t type, uint32_t subtype);
std::string coff_machine(uint16_t number);
// The machine that this program runs on, by the same names; "" if it has none here.
std::string this_machine();

}  // namespace gimbal
