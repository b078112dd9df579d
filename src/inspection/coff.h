// What PE images and COFF objects share: the table of sections.
#pragma once
#include <string>
#include <vector>

#include "inspection/image_reader.h"

namespace gimbal {

struct CoffSection {
  std::string name;
  uint64_t address, offset, size;  // size: of the bytes in the file
  bool executable;
};

// Errors: Malformed if a section lies outside of the file.
Status read_coff_sections(const ByteView&, uint64_t at, uint32_t count, InspectionBudget&,
                          std::vector<CoffSection>&);

}  // namespace gimbal
