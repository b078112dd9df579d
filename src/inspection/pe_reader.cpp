// PE/COFF images (DLLs and programs of Windows), by Microsoft's PE format specification.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "inspection/image_reader.h"

namespace gimbal {
namespace {

constexpr uint64_t kNowhere = UINT64_MAX;

enum Directory : uint32_t { kExport = 0, kImport = 1, kDebug = 6, kDelayImport = 13 };

class PeReader {
 public:
  PeReader(ByteView view, InspectionBudget& budget, ImageDraft& draft)
      : view_(view), budget_(budget), draft_(draft), image_(draft.image) {}

  Status read() {
    if (view_.size() < 64) return truncated_image("DOS header", 64, view_.size());
    const uint64_t at = view_.u32(60);
    if (!view_.has(at, 24)) return truncated_image("PE header", at + 24, view_.size());
    if (!view_.starts_with(at, std::string_view("PE\0\0", 4)))
      return malformed_image("is a program of DOS, not a PE file");
    const uint16_t sections = view_.u16(at + 6), optional = view_.u16(at + 20), flags = view_.u16(at + 22);
    optional_ = at + 24;
    const uint16_t magic = view_.u16(optional_);
    wide_ = magic == 0x20b;
    if (!view_.has(optional_, optional) || optional < (wide_ ? 112 : 96))
      return truncated_image("optional header", optional_ + std::max<uint64_t>(optional, wide_ ? 112 : 96),
                             view_.size());
    if (magic != 0x20b && magic != 0x10b)
      return malformed_image(format("has an optional header {:#x}", magic));
    image_.format = "PE";
    image_.bits = wide_ ? 64 : 32;
    image_.machine = coff_machine(view_.u16(at + 4));
    image_.type = flags & 0x2000 ? "shared library" : "program";
    image_.stripped = true;  // symbols of PE files are in files of their own
    directories_ =
        std::min<uint32_t>(view_.u32(optional_ + (wide_ ? 108 : 92)), (optional - (wide_ ? 112 : 96)) / 8);
    if (auto s = read_coff_sections(view_, optional_ + optional, sections, budget_, sections_); !s) return s;
    for (const CoffSection& s : sections_)
      if (s.size) draft_.sections.push_back({s.name, s.offset, s.size, s.executable});
    exports();
    imports(kImport);
    imports(kDelayImport);
    debug();
    return Done{};
  }

 private:
  struct Range {
    uint64_t address = 0, size = 0;
  };

  Range directory(Directory d) const {
    if (d >= directories_) return {};
    const uint64_t at = optional_ + (wide_ ? 112 : 96) + uint64_t(d) * 8;
    return {view_.u32(at), view_.u32(at + 4)};
  }

  // kNowhere if the file does not contain the address.
  uint64_t offset_of(uint64_t address) const {
    for (const CoffSection& s : sections_)
      if (address >= s.address && address - s.address < s.size) return s.offset + (address - s.address);
    return kNowhere;
  }

  std::string text_at(uint64_t address) const {
    const uint64_t at = offset_of(address);
    return at == kNowhere ? std::string() : view_.text(at);
  }

  void exports() {
    const Range d = directory(kExport);
    const uint64_t at = d.size ? offset_of(d.address) : kNowhere;
    if (at == kNowhere) return;
    image_.name = text_at(view_.u32(at + 12));
    const uint64_t count = view_.u32(at + 24), functions = view_.u32(at + 20);
    const auto names = offset_of(view_.u32(at + 32));
    if (functions > count)
      image_.notes.push_back(format("{} of its functions are exported by number alone", functions - count));
    if (names == kNowhere) return;
    if (!view_.has_table(names, count, 4)) {
      image_.notes.push_back("its table of exports lies outside of the file");
      return;
    }
    for (uint64_t i = 0; i < count && budget_.records(); i++)
      if (const std::string name = text_at(view_.u32(names + i * 4)); !name.empty())
        budget_.add(image_.exported, name);
  }

  void imports(Directory which) {
    const Range d = directory(which);
    const uint32_t each = which == kImport ? 20 : 32;
    uint64_t at = d.size ? offset_of(d.address) : kNowhere;
    for (; view_.has(at, each) && budget_.records(); at += each) {
      // Delayed imports of old linkers have addresses in memory in place of offsets from its beginning.
      const bool relative = which == kImport || (view_.u32(at) & 1);
      const uint64_t base = relative ? 0 : image_base();
      const uint32_t name = view_.u32(at + (which == kImport ? 12 : 4));
      const uint32_t first = view_.u32(at + (which == kImport ? 0 : 16)), second = view_.u32(at + 16);
      if (!name) break;
      const std::string library = text_at(name - base);
      if (library.empty()) break;
      budget_.add(image_.needed, library);
      thunks((first ? first : second) - base, base);
    }
  }

  uint64_t image_base() const { return wide_ ? view_.u64(optional_ + 24) : view_.u32(optional_ + 28); }

  void thunks(uint64_t address, uint64_t base) {
    const uint64_t each = wide_ ? 8 : 4, by_number = wide_ ? uint64_t(1) << 63 : uint64_t(1) << 31;
    uint64_t at = offset_of(address);
    for (; view_.has(at, each) && budget_.records(); at += each) {
      const uint64_t entry = wide_ ? view_.u64(at) : view_.u32(at);
      if (!entry) break;
      if (entry & by_number) continue;
      if (const std::string name = text_at(entry - base + 2); !name.empty())
        budget_.add(image_.undefined, name);
    }
  }

  // The PDB's GUID and age, as symbol servers write them.
  void debug() {
    const Range d = directory(kDebug);
    const auto table = d.size ? offset_of(d.address) : kNowhere;
    if (table == kNowhere) return;
    for (uint64_t at = table; at + 28 <= table + d.size && view_.has(at, 28) && budget_.records(); at += 28) {
      const uint64_t content = view_.u32(at + 24);
      if (view_.u32(at + 12) != 2 || !view_.starts_with(content, "RSDS") || !view_.has(content, 24)) continue;
      image_.build_id =
          format("{:08x}{:04x}{:04x}{}{:x}", view_.u32(content + 4), view_.u16(content + 8),
                 view_.u16(content + 10), hexadecimal(view_, content + 12, 8), view_.u32(content + 20));
      return;
    }
  }

  ByteView view_;
  InspectionBudget& budget_;
  ImageDraft& draft_;
  BinaryImage& image_;
  uint64_t optional_ = 0;
  uint32_t directories_ = 0;
  bool wide_ = false;
  std::vector<CoffSection> sections_;
};

}  // namespace

Status read_pe(ByteView view, InspectionBudget& budget, ImageDraft& draft) {
  draft.view = view;
  return PeReader(view, budget, draft).read();
}

}  // namespace gimbal
