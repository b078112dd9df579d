// ELF, by the System V ABI (gABI 4.3): 32 and 64 bits, both byte orders, with or without section headers.
#include <algorithm>

#include "base/format.h"
#include "inspection/image_reader.h"

namespace gimbal {
namespace {

enum : uint32_t { kLoad = 1, kDynamic = 2, kNote = 4 };                               // p_type
enum : uint32_t { kSymtab = 2, kStrtab = 3, kNotes = 7, kNoBits = 8, kDynsym = 11 };  // sh_type

struct Segment {
  uint32_t type, flags;
  uint64_t offset, address, size;
};

struct Section {
  uint32_t name, type, link;
  uint64_t flags, offset, size;
};

class ElfReader {
 public:
  ElfReader(ByteView view, InspectionBudget& budget, ImageDraft& draft)
      : view_(view), budget_(budget), draft_(draft), image_(draft.image) {}

  Status read() {
    if (auto s = header(); !s) return s;
    if (auto s = segments(); !s) return s;
    if (auto s = sections(); !s) return s;
    dynamic();
    notes();
    symbols();
    return Done{};
  }

 private:
  bool wide() const { return image_.bits == 64; }
  uint64_t word(uint64_t at) const { return wide() ? view_.u64(at) : view_.u32(at); }

  Status header() {
    const uint8_t bits = view_.u8(4), order = view_.u8(5);
    if (view_.size() < 52 || (bits == 2 && view_.size() < 64))
      return truncated_image("ELF header", bits == 2 ? 64 : 52, view_.size());
    if (bits < 1 || bits > 2 || order < 1 || order > 2)
      return malformed_image(
          format("has an ELF header of class {} and byte order {}: expected 1 or 2", bits, order));
    image_.format = "ELF";
    image_.bits = bits == 2 ? 64 : 32;
    image_.big_endian = order == 2;
    draft_.view = view_ = view_.swapped(order == 2);
    image_.machine = elf_machine(view_.u16(18), image_.bits);
    kind_ = view_.u16(16);
    if (kind_ < 1 || kind_ > 4) return malformed_image(format("is an ELF file of unknown type {}", kind_));
    constexpr const char* kTypes[] = {"", "object", "program", "shared library", "core dump"};
    image_.type = kTypes[kind_];
    return Done{};
  }

  Status segments() {
    const uint64_t at = word(wide() ? 32 : 28);
    const uint16_t each = view_.u16(wide() ? 54 : 42);
    uint64_t count = view_.u16(wide() ? 56 : 44);
    if (!count) return Done{};
    if (count == 0xffff) {  // the real number is in the first section header
      const uint64_t first = word(wide() ? 40 : 32);
      count = view_.u32(first + (wide() ? 44 : 28));
    }
    if (each != (wide() ? 56 : 32)) return malformed_image(format("has program headers of {} bytes", each));
    if (!view_.has_table(at, count, each))
      return truncated_image("program headers", at + count * each, view_.size());
    for (uint64_t i = 0; i < count && budget_.records(); i++) {
      const uint64_t p = at + i * each;
      const Segment s = wide() ? Segment{view_.u32(p), view_.u32(p + 4), view_.u64(p + 8), view_.u64(p + 16),
                                         view_.u64(p + 32)}
                               : Segment{view_.u32(p), view_.u32(p + 24), view_.u32(p + 4), view_.u32(p + 8),
                                         view_.u32(p + 16)};
      if (s.type != kLoad && s.type != kDynamic && s.type != kNote) continue;
      if (!view_.has(s.offset, s.size))
        return truncated_image("segments", checked_add(s.offset, s.size).value_or(UINT64_MAX), view_.size());
      segments_.push_back(s);
    }
    return Done{};
  }

  Section section_at(uint64_t p) const {
    return wide() ? Section{view_.u32(p),     view_.u32(p + 4),  view_.u32(p + 40),
                            view_.u64(p + 8), view_.u64(p + 24), view_.u64(p + 32)}
                  : Section{view_.u32(p),     view_.u32(p + 4),  view_.u32(p + 24),
                            view_.u32(p + 8), view_.u32(p + 16), view_.u32(p + 20)};
  }

  Status sections() {
    const uint64_t at = word(wide() ? 40 : 32);
    const uint16_t each = view_.u16(wide() ? 58 : 46);
    uint64_t count = view_.u16(wide() ? 60 : 48), names = view_.u16(wide() ? 62 : 50);
    if (!at) return no_sections();
    if (each != (wide() ? 64 : 40)) return malformed_image(format("has section headers of {} bytes", each));
    if (!view_.has(at, each)) return truncated_image("section headers", at + each, view_.size());
    const Section first = section_at(at);
    if (!count) count = first.size;
    if (names == 0xffff) names = first.link;
    if (!view_.has_table(at, count, each))
      return truncated_image(
          "section headers",
          checked_add(at, checked_mul(count, each).value_or(UINT64_MAX)).value_or(UINT64_MAX), view_.size());
    for (uint64_t i = 0; i < count && budget_.records(); i++) sections_.push_back(section_at(at + i * each));
    const Section* strings = names < sections_.size() ? &sections_[names] : nullptr;
    uint64_t cut_end = 0;
    for (const Section& s : sections_) {
      BinarySection out;
      if (s.type != kNoBits && !view_.has(s.offset, s.size)) {
        cut_end = std::max(cut_end, checked_add(s.offset, s.size).value_or(UINT64_MAX));
        continue;
      }
      if (strings) out.name = view_.part(strings->offset, strings->size).text(s.name);
      out.offset = s.offset, out.size = s.type == kNoBits ? 0 : s.size;
      out.executable = (s.flags & 4) && s.type != kNoBits;
      draft_.sections.push_back(std::move(out));
    }
    if (cut_end) return truncated_image("sections", cut_end, view_.size());
    image_.stripped =
        std::none_of(sections_.begin(), sections_.end(), [](const Section& s) { return s.type == kSymtab; });
    return Done{};
  }

  // Section headers are optional for loading: segments stand for sections.
  Status no_sections() {
    image_.stripped = true;
    image_.notes.push_back("it has no section headers: its code is read by segments");
    for (const Segment& s : segments_)
      if (s.type == kLoad) draft_.sections.push_back({"", s.offset, s.size, (s.flags & 1) != 0});
    return Done{};
  }

  // The offset in the file of an address in memory.
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const Segment& s : segments_)
      if (s.type == kLoad && address >= s.address && address - s.address < s.size)
        return s.offset + (address - s.address);
    return std::nullopt;
  }

  void dynamic() {
    const auto d =
        std::find_if(segments_.begin(), segments_.end(), [](const Segment& s) { return s.type == kDynamic; });
    if (d == segments_.end()) return;
    std::vector<uint64_t> needed, rpath, runpath;
    std::optional<uint64_t> soname, strings;
    const uint64_t each = wide() ? 16 : 8;
    for (uint64_t at = d->offset; at + each <= d->offset + d->size && budget_.records(); at += each) {
      const uint64_t tag = word(at), value = word(at + each / 2);
      if (tag == 0) break;
      if (tag == 1) needed.push_back(value);
      if (tag == 4) hash_ = value;
      if (tag == 5) strings = value;
      if (tag == 6) symbol_table_ = value;
      if (tag == 10) string_bytes_ = value;
      if (tag == 14) soname = value;
      if (tag == 15) rpath.push_back(value);
      if (tag == 29) runpath.push_back(value);
      if (tag == 0x6ffffef5) gnu_hash_ = value;
    }
    const auto at = strings ? offset_of(*strings) : std::nullopt;
    if (!at) return;
    strings_ = view_.part(*at, string_bytes_ ? string_bytes_ : UINT64_MAX);
    for (uint64_t n : needed) budget_.add(image_.needed, strings_.text(n));
    for (auto& [from, to] : {std::pair(&rpath, &image_.rpath), std::pair(&runpath, &image_.runpath)})
      for (uint64_t n : *from) split_path(strings_.text(n), *to);
    if (soname) image_.name = strings_.text(*soname);
    if (kind_ == 3 && image_.name.empty() && has_interpreter()) image_.type = "program";
  }

  bool has_interpreter() const {
    for (const BinarySection& s : draft_.sections)
      if (s.name == ".interp") return true;
    return false;
  }

  void split_path(const std::string& path, std::vector<std::string>& to) {
    for (size_t at = 0; at <= path.size();) {
      const size_t end = std::min(path.find(':', at), path.size());
      if (end > at) budget_.add(to, path.substr(at, end - at));
      at = end + 1;
    }
  }

  void notes() {
    for (const Segment& s : segments_)
      if (s.type == kNote) build_id(s.offset, s.size);
    for (const Section& s : sections_)
      if (s.type == kNotes && view_.has(s.offset, s.size)) build_id(s.offset, s.size);
  }

  void build_id(uint64_t at, uint64_t size) {
    const uint64_t end = at + size;
    while (image_.build_id.empty() && at + 12 <= end && budget_.records()) {
      const uint32_t name = view_.u32(at), bytes = view_.u32(at + 4), type = view_.u32(at + 8);
      const uint64_t content = at + 12 + align_up(name, 4);
      if (type == 3 && name == 4 && view_.starts_with(at + 12, std::string_view("GNU\0", 4)) && bytes <= 64)
        image_.build_id = hexadecimal(view_, content, bytes);
      at = content + align_up(bytes, 4);
    }
  }

  void symbols() {
    const Section* table = find(kDynsym);
    if (!table) table = find(kSymtab);
    if (table) {
      const Section* strings = table->link < sections_.size() ? &sections_[table->link] : nullptr;
      if (strings && strings->type == kStrtab)
        symbol_table(table->offset, table->size / symbol_bytes(), view_.part(strings->offset, strings->size));
      else image_.notes.push_back("its symbol table has no names");
    } else if (symbol_table_) {
      if (const auto at = offset_of(*symbol_table_)) symbol_table(*at, dynamic_count(), strings_);
    }
  }

  const Section* find(uint32_t type) const {
    for (const Section& s : sections_)
      if (s.type == type && s.size >= symbol_bytes()) return &s;
    return nullptr;
  }

  uint64_t symbol_bytes() const { return wide() ? 24 : 16; }

  // Without section headers only the hash tables give the number of symbols.
  uint64_t dynamic_count() {
    if (hash_)
      if (const auto at = offset_of(*hash_)) return view_.u32(*at + 4);
    if (!gnu_hash_) return 0;
    const auto at = offset_of(*gnu_hash_);
    if (!at) return 0;
    const uint32_t buckets = view_.u32(*at), first = view_.u32(*at + 4), bloom = view_.u32(*at + 8);
    const uint64_t table = *at + 16 + uint64_t(bloom) * (wide() ? 8 : 4),
                   chains = table + uint64_t(buckets) * 4;
    uint32_t last = 0;
    for (uint32_t b = 0; b < buckets && budget_.records(); b++)
      last = std::max(last, view_.u32(table + b * uint64_t(4)));
    if (last < first) return first;
    while (view_.has(chains + uint64_t(last - first) * 4, 4) && budget_.records() &&
           !(view_.u32(chains + uint64_t(last - first) * 4) & 1))
      last++;
    return uint64_t(last) + 1;
  }

  void symbol_table(uint64_t at, uint64_t count, const ByteView& strings) {
    if (!view_.has_table(at, count, symbol_bytes())) {
      image_.notes.push_back("its symbol table lies outside of the file");
      return;
    }
    for (uint64_t i = 1; i < count && budget_.records(); i++) {
      const uint64_t p = at + i * symbol_bytes();
      const uint8_t info = view_.u8(p + (wide() ? 4 : 12)), visibility = view_.u8(p + (wide() ? 5 : 13)) & 3;
      const uint16_t section = view_.u16(p + (wide() ? 6 : 14));
      const uint8_t binding = info >> 4, type = info & 15;
      if (binding == 0 || type == 3 || type == 4) continue;  // local; of a section; of a file
      const bool defined = section != 0, hidden = visibility == 1 || visibility == 2;
      if (defined && hidden && kind_ != 1) continue;  // an object shows them to the linker
      const std::string name = strings.text(view_.u32(p));
      if (name.empty()) continue;
      budget_.add(defined ? image_.exported : image_.undefined, name);
    }
  }

  ByteView view_, strings_;
  InspectionBudget& budget_;
  ImageDraft& draft_;
  BinaryImage& image_;
  uint16_t kind_ = 0;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  std::optional<uint64_t> hash_, gnu_hash_, symbol_table_;
  uint64_t string_bytes_ = 0;
};

}  // namespace

bool is_elf(const ByteView& v) {
  return v.starts_with(0,
                       "\x7f"
                       "ELF");
}

Status read_elf(ByteView view, InspectionBudget& budget, ImageDraft& draft) {
  return ElfReader(view, budget, draft).read();
}

}  // namespace gimbal
