// COFF objects (.obj), those with more than 65,279 sections among them, and members of import libraries, by
// Microsoft's PE format specification.
#include <algorithm>

#include "base/format.h"
#include "inspection/image_reader.h"

namespace gimbal {
namespace {

// ANON_OBJECT_HEADER_BIGOBJ, its class id.
constexpr std::string_view kBigId("\xc7\xa1\xba\xd1\xee\xba\xa9\x4b\xaf\x20\xfa\xf6\x6a\xa4\xdc\xb8", 16);

bool is_anonymous(const ByteView& v) { return v.size() >= 20 && v.u16(0) == 0 && v.u16(2) == 0xffff; }
bool is_big(const ByteView& v) { return is_anonymous(v) && v.u16(4) >= 2 && v.starts_with(12, kBigId); }

// 32-bit x86 has an underscore before the names of C.
std::string_view c_name(const std::string& name, const std::string& machine) {
  std::string_view s = name;
  if (machine == "x86" && s.starts_with('_')) s.remove_prefix(1);
  return s;
}

}  // namespace

Status read_coff_sections(const ByteView& view, uint64_t at, uint32_t count, InspectionBudget& budget,
                          std::vector<CoffSection>& to) {
  if (!view.has_table(at, count, 40))
    return truncated_image("section headers", at + uint64_t(count) * 40, view.size());
  for (uint32_t i = 0; i < count && budget.records(); i++) {
    const uint64_t p = at + uint64_t(i) * 40;
    const uint32_t virtual_size = view.u32(p + 8), raw = view.u32(p + 16), flags = view.u32(p + 36);
    CoffSection s{view.field(p, 8), view.u32(p + 12), view.u32(p + 20), raw, (flags & 0x20000020) != 0};
    if (flags & 0x80 || !s.offset) s.size = 0;  // zeros, which the file does not contain
    else if (!view.has(s.offset, s.size)) return truncated_image("sections", s.offset + s.size, view.size());
    if (virtual_size && virtual_size < s.size) s.size = virtual_size;
    to.push_back(std::move(s));
  }
  return Done{};
}

bool is_coff_object(const ByteView& v) {
  if (is_big(v)) return true;
  if (v.size() < 20) return false;
  const uint16_t machine = v.u16(0);
  if (machine != 0x14c && machine != 0x1c0 && machine != 0x1c4 && machine != 0x8664 && machine != 0xaa64)
    return false;
  const uint16_t sections = v.u16(2), optional = v.u16(16);
  return optional == 0 && v.has_table(20, sections, 40) && v.u32(8) <= v.size();
}

Status read_coff_object(ByteView view, InspectionBudget& budget, ImageDraft& draft) {
  draft.view = view;
  BinaryImage& image = draft.image;
  const bool big = is_big(view);
  const uint64_t header = big ? 56 : 20;
  if (view.size() < header) return truncated_image("COFF header", header, view.size());
  image.format = "COFF", image.type = "object";
  image.machine = coff_machine(view.u16(big ? 6 : 0));
  image.bits = image.machine == "x86" || image.machine == "ARM" ? 32 : 64;
  const uint32_t sections = big ? view.u32(44) : view.u16(2);
  const uint64_t table = view.u32(big ? 48 : 8), count = view.u32(big ? 52 : 12), each = big ? 20 : 18;
  std::vector<CoffSection> found;
  if (auto s = read_coff_sections(view, header, sections, budget, found); !s) return s;
  for (CoffSection& s : found)
    if (s.size) draft.sections.push_back({std::move(s.name), s.offset, s.size, s.executable});
  if (!count) return image.stripped = true, Done{};
  if (!view.has_table(table, count, each))
    return truncated_image("symbol table", table + count * each, view.size());
  const ByteView strings = view.part(table + count * each, UINT64_MAX);
  for (uint64_t i = 0; i < count && budget.records(); i++) {
    const uint64_t p = table + i * each;
    const uint32_t value = view.u32(p + 8);
    const int32_t section = big ? int32_t(view.u32(p + 12)) : int16_t(view.u16(p + 12));
    const uint8_t storage = view.u8(p + (big ? 18 : 16));
    i += view.u8(p + (big ? 19 : 17));             // additional records
    if (storage != 2 && storage != 105) continue;  // external, weak external
    const std::string name = view.u32(p) ? view.field(p, 8) : strings.text(view.u32(p + 4));
    if (name.empty()) continue;
    const bool defined = section != 0 || value != 0;  // with a value and no section: common
    budget.add(defined ? image.exported : image.undefined, c_name(name, image.machine));
  }
  return Done{};
}

bool is_import_member(const ByteView& v) { return is_anonymous(v) && v.u16(4) == 0; }

Status read_import_member(ByteView view, InspectionBudget& budget, ImageDraft& draft) {
  draft.view = view;
  BinaryImage& image = draft.image;
  image.format = "COFF", image.type = "import library";
  image.machine = coff_machine(view.u16(6));
  image.bits = image.machine == "x86" || image.machine == "ARM" ? 32 : 64;
  const std::string name = view.text(20), library = view.text(20 + name.size() + 1);
  if (name.empty() || library.empty()) return malformed_image("has a member without a symbol or a library");
  budget.add(image.exported, c_name(name, image.machine));
  budget.add(image.needed, library);
  return Done{};
}

}  // namespace gimbal
