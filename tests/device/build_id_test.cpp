// The linker's fingerprint of the code at an address, against what the inspection reads in the library's
// file.
#include <gtest/gtest.h>
#include <link.h>

#include <map>
#include <string>
#include <vector>

#include "device/library.h"
#include "inspection/inspection.h"

namespace gimbal {
namespace {

// The first and the last byte of each loaded part of this process's libraries, by their files.
std::map<std::string, std::vector<uintptr_t>> loaded_parts() {
  std::map<std::string, std::vector<uintptr_t>> all;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* to) {
        if (object->dlpi_name[0] != '/') return 0;  // the program, and what the kernel brings
        auto& parts = (*static_cast<std::map<std::string, std::vector<uintptr_t>>*>(to))[object->dlpi_name];
        for (int i = 0; i < object->dlpi_phnum; i++) {
          const ElfW(Phdr)& part = object->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || part.p_memsz == 0) continue;
          const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
          parts.push_back(begin), parts.push_back(begin + part.p_memsz - 1);
        }
        return 0;
      },
      &all);
  return all;
}

TEST(BuildIds, AreThoseOfTheFiles) {
  size_t with_id = 0;
  for (const auto& [file, addresses] : loaded_parts()) {
    SCOPED_TRACE(file);
    const auto inspection = inspect_library(file);
    ASSERT_TRUE(inspection) << inspection.error().message;
    const std::string& id = inspection->images.at(0).build_id;
    for (const uintptr_t address : addresses)
      EXPECT_EQ(build_id_of(reinterpret_cast<const void*>(address)), id);
    with_id += !id.empty();
  }
  EXPECT_GT(with_id, 0u) << "the C library has one";
}

TEST(BuildIds, OfDataThatBelongsToNoFileAreEmpty) {
  const std::vector<char> heap(1 << 20);
  EXPECT_EQ(build_id_of(heap.data()), "");
  EXPECT_EQ(build_id_of(nullptr), "");
}

}  // namespace
}  // namespace gimbal
