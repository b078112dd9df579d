#include "device/library.h"

#include "base/format.h"

namespace gimbal {
namespace {

// Offsets and numbers of the System V ABI, ELF-64 object file format (gABI 4.3).
constexpr size_t kHeaderBytes = 64, kPartHeaderBytes = 56, kSectionHeaderBytes = 64;
constexpr uint32_t kPartToLoad = 1, kPartOfLoader = 2;

#if defined(__x86_64__)
constexpr uint16_t kThisMachine = 62;
#elif defined(__aarch64__)
constexpr uint16_t kThisMachine = 183;
#else
constexpr uint16_t kThisMachine = 0;  // any
#endif

std::string machine(uint16_t m) {
  switch (m) {
    case 3: return "32-bit x86";
    case 40: return "32-bit ARM";
    case 62: return "x86-64";
    case 183: return "64-bit ARM";
    case 243: return "RISC-V";
    default: return format("machine {}", m);
  }
}

Error no(std::string why) { return {Code::Failed, std::move(why), ""}; }

Error cut(uint64_t needed, size_t size) {
  return no(format("is truncated: its headers need {} bytes, but it has {}", needed, size));
}

// The end of [at, at + n); UINT64_MAX on overflow, which exceeds every file.
uint64_t end_of(uint64_t at, uint64_t n) { return checked_add(at, n).value_or(UINT64_MAX); }

}  // namespace

Status check_elf_library(Bytes file) {
  const std::byte* p = file.data();
  if (file.size() < 20 || memcmp(p,
                                 "\x7f"
                                 "ELF",
                                 4) != 0)
    return no("is not a library (no ELF header)");
  const auto bits = read_le<uint8_t>(p + 4), order = read_le<uint8_t>(p + 5);
  const auto type = read_le<uint16_t>(p + 16), whose = read_le<uint16_t>(p + 18);
  if (order != 1) return no("is for a machine with the other byte order");
  if (kThisMachine && whose != kThisMachine)
    return no(format("is for another processor: for {}, and this program for {}", machine(whose),
                     machine(kThisMachine)));
  if (bits != 2) return no("is not a 64-bit library");
  if (file.size() < kHeaderBytes) return cut(kHeaderBytes, file.size());
  if (type != 3) return no("is not a shared library (another kind of ELF file)");

  const auto parts_at = read_le<uint64_t>(p + 32), sections_at = read_le<uint64_t>(p + 40);
  const auto part_bytes = read_le<uint16_t>(p + 54), parts = read_le<uint16_t>(p + 56);
  const auto section_bytes = read_le<uint16_t>(p + 58), sections = read_le<uint16_t>(p + 60);
  if (part_bytes != kPartHeaderBytes || (sections && section_bytes != kSectionHeaderBytes))
    return no("has headers of unknown sizes");
  if (uint64_t end = end_of(parts_at, uint64_t(parts) * part_bytes); end > file.size())
    return cut(end, file.size());
  // Linkers write the sections last, so this also detects files that lack
  // only their end.
  if (uint64_t end = end_of(sections_at, uint64_t(sections) * section_bytes); end > file.size())
    return cut(end, file.size());
  bool loads = false, links = false;
  for (int i = 0; i < parts; i++) {
    const std::byte* part = p + parts_at + size_t(i) * part_bytes;
    const auto kind = read_le<uint32_t>(part);
    if (kind != kPartToLoad && kind != kPartOfLoader) continue;
    const uint64_t end = end_of(read_le<uint64_t>(part + 8), read_le<uint64_t>(part + 32));
    if (end > file.size()) return cut(end, file.size());
    (kind == kPartToLoad ? loads : links) = true;
  }
  if (!loads || !links) return no("has no segment to load");
  return Done{};
}

}  // namespace gimbal
