#include "device/library.h"

#include <link.h>

#include "base/bytes.h"
#include "base/format.h"
#include "device/loader_lock.h"

namespace gimbal {
namespace {

struct Search {
  uintptr_t address;
  std::string found;
};

// Notes are three words (length of name, length of data, type), the name and the data, each padded to four
// bytes.
std::string id_in(const std::byte* notes, size_t n) {
  constexpr uint32_t kBuildId = 3;
  for (size_t at = 0; at + 12 <= n;) {
    const auto name = read_le<uint32_t>(notes + at), data = read_le<uint32_t>(notes + at + 4),
               type = read_le<uint32_t>(notes + at + 8);
    const size_t data_at = at + 12 + align_up(name, 4), next = data_at + align_up(data, 4);
    if (next > n) break;
    if (type == kBuildId && name == 4 && memcmp(notes + at + 12, "GNU", 4) == 0) {
      std::string hex;
      for (uint32_t i = 0; i < data; i++) hex += format("{:02x}", read_le<uint8_t>(notes + data_at + i));
      return hex;
    }
    at = next;
  }
  return "";
}

int look(dl_phdr_info* object, size_t, void* search) {
  Search& s = *static_cast<Search*>(search);
  auto start = [&](const ElfW(Phdr) & part) { return uintptr_t(object->dlpi_addr + part.p_vaddr); };
  bool here = false;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && s.address - start(part) < part.p_memsz) here = true;
  }
  for (int i = 0; here && s.found.empty() && i < object->dlpi_phnum; i++)
    if (const ElfW(Phdr)& part = object->dlpi_phdr[i]; part.p_type == PT_NOTE)
      s.found = id_in(reinterpret_cast<const std::byte*>(start(part)), part.p_memsz);
  return here;  // the search is over
}

}  // namespace

std::string build_id_of(const void* address) {
  Search s{reinterpret_cast<uintptr_t>(address), ""};
  const LoaderLock looking;  // dl_iterate_phdr takes the loader's lock
  dl_iterate_phdr(look, &s);
  return s.found;
}

}  // namespace gimbal
