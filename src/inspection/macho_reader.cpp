// Mach-O, by mach-o/loader.h, nlist.h and fat.h: thin and fat, 32 and 64 bits, both byte orders.
#include <algorithm>

#include "base/format.h"
#include "inspection/image_reader.h"

namespace gimbal {
namespace {

constexpr uint32_t kMagic32 = 0xfeedface, kMagic64 = 0xfeedfacf, kFat32 = 0xcafebabe, kFat64 = 0xcafebabf;
constexpr uint32_t kMostSlices = 64;

class MachOReader {
 public:
  MachOReader(ByteView view, InspectionBudget& budget, ImageDraft& draft)
      : view_(view), budget_(budget), draft_(draft), image_(draft.image) {}

  Status read() {
    const bool big = view_.swapped(true).u32(0) == kMagic32 || view_.swapped(true).u32(0) == kMagic64;
    draft_.view = view_ = view_.swapped(big);
    wide_ = view_.u32(0) == kMagic64;
    const uint64_t header = wide_ ? 32 : 28;
    if (view_.size() < header) return truncated_image("Mach-O header", header, view_.size());
    image_.format = "Mach-O";
    image_.bits = wide_ ? 64 : 32;
    image_.big_endian = big;
    image_.machine = macho_machine(view_.u32(4), view_.u32(8));
    image_.type = type_name(view_.u32(12));
    const uint32_t commands = view_.u32(16), bytes = view_.u32(20);
    if (!view_.has(header, bytes)) return truncated_image("load commands", header + bytes, view_.size());
    uint64_t at = header;
    const uint64_t end = header + bytes;
    for (uint32_t i = 0; i < commands && budget_.records(); i++) {
      const uint32_t size = at + 8 <= end ? view_.u32(at + 4) : 0;
      if (size < 8 || size > end - at)
        return malformed_image(format("has load command {} of {} bytes, of which {} are left", i, size,
                                      end - std::min(at, end)));
      if (auto s = command(view_.u32(at), at, size); !s) return s;
      at += size;
    }
    symbols();
    if (!image_.exported.count()) trie();
    return Done{};
  }

 private:
  static std::string type_name(uint32_t type) {
    switch (type) {
      case 1: return "object";
      case 2: return "program";
      case 4: return "core dump";
      case 6: return "shared library";
      case 8: return "bundle";
      case 9: return "stub of a library";
      case 10: return "debug symbols";
      default: return format("Mach-O file of type {}", type);
    }
  }

  Status command(uint32_t type, uint64_t at, uint32_t size) {
    switch (type) {
      case 0x1:
      case 0x19: return segment(at, size, type == 0x19);
      case 0x2:
        symbols_ = view_.u32(at + 8), count_ = view_.u32(at + 12);
        strings_ = view_.part(view_.u32(at + 16), view_.u32(at + 20));
        if (size < 24 || !view_.has_table(symbols_, count_, wide_ ? 16 : 12) ||
            !view_.has(view_.u32(at + 16), view_.u32(at + 20)))
          return truncated_image("symbol table",
                                 std::max(symbols_ + count_ * (wide_ ? 16 : 12),
                                          uint64_t(view_.u32(at + 16)) + view_.u32(at + 20)),
                                 view_.size());
        break;
      case 0xc:
      case 0x20:
      case 0x80000018:
      case 0x8000001f:
      case 0x80000023: budget_.add(image_.needed, string_of(at, size)); break;
      case 0xd: image_.name = string_of(at, size); break;
      case 0x8000001c: budget_.add(image_.rpath, string_of(at, size)); break;
      case 0x1b:
        if (size >= 24) image_.build_id = hexadecimal(view_, at + 8, 16);
        break;
      case 0x22:
      case 0x80000022: trie_ = view_.part(view_.u32(at + 40), view_.u32(at + 44)); break;
      case 0x80000033: trie_ = view_.part(view_.u32(at + 8), view_.u32(at + 12)); break;
      case 0x24: image_.system = system_name(1, view_.u32(at + 8)); break;
      case 0x32: image_.system = system_name(view_.u32(at + 8), view_.u32(at + 12)); break;
      default: break;
    }
    return Done{};
  }

  // A command's string: its offset follows the command's size.
  std::string string_of(uint64_t at, uint32_t size) const {
    const uint32_t offset = view_.u32(at + 8);
    return offset < size ? view_.part(at + offset, size - offset).text(0) : std::string();
  }

  static std::string system_name(uint32_t platform, uint32_t version) {
    const char* name = platform == 1   ? "macOS"
                       : platform == 2 ? "iOS"
                       : platform == 6 ? "Mac Catalyst"
                                       : nullptr;
    return format("{} {}.{} or newer", name ? name : format("platform {}", platform).c_str(), version >> 16,
                  version >> 8 & 0xff);
  }

  Status segment(uint64_t at, uint32_t size, bool wide) {
    const uint64_t head = wide ? 72 : 56, each = wide ? 80 : 68;
    if (size < head) return malformed_image(format("has a segment command of {} bytes", size));
    const uint32_t count = view_.u32(at + (wide ? 64 : 48));
    if (count > (size - head) / each)
      return malformed_image(format("has a segment of {} sections in {} bytes", count, size));
    for (uint32_t i = 0; i < count && budget_.records(); i++) {
      const uint64_t s = at + head + i * each;
      const uint64_t bytes = wide ? view_.u64(s + 40) : view_.u32(s + 36);
      const uint32_t offset = view_.u32(s + (wide ? 48 : 40)), flags = view_.u32(s + (wide ? 64 : 56));
      const uint32_t type = flags & 0xff;
      if (type == 1 || type == 0xc || type == 0x12) continue;  // zeros, which the file does not contain
      const std::string name = view_.field(s + 16, 16) + "," + view_.field(s, 16);
      if (!view_.has(offset, bytes)) {
        if (offset == 0) continue;  // in a file of debug symbols
        return truncated_image("sections", checked_add(offset, bytes).value_or(UINT64_MAX), view_.size());
      }
      draft_.sections.push_back({name, offset, bytes, (flags & 0x80000400) != 0});
    }
    return Done{};
  }

  static std::string_view c_name(std::string_view name) {
    if (name.starts_with('_')) name.remove_prefix(1);
    return name;
  }

  void symbols() {
    image_.stripped = true;
    for (uint64_t i = 0; i < count_ && budget_.records(); i++) {
      const uint64_t p = symbols_ + i * (wide_ ? 16 : 12);
      const uint8_t type = view_.u8(p + 4);
      if (type & 0xe0) {  // of a debugger
        image_.stripped = false;
        continue;
      }
      if (!(type & 1)) {
        image_.stripped = false;
        continue;
      }
      const uint64_t value = wide_ ? view_.u64(p + 8) : view_.u32(p + 8);
      const bool common = (type & 0xe) == 0 && value != 0;
      const bool defined = (type & 0xe) != 0 && (type & 0xe) != 0xc;
      if (type & 0x10) continue;  // private
      const std::string name = strings_.text(view_.u32(p));
      if (!name.empty()) budget_.add(defined || common ? image_.exported : image_.undefined, c_name(name));
    }
  }

  uint64_t uleb(uint64_t& at) const {
    uint64_t v = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      const uint8_t b = trie_.u8(at++);
      v |= uint64_t(b & 0x7f) << shift;
      if (!(b & 0x80)) break;
    }
    return v;
  }

  // The exports for the loader, which remain when the symbol table is stripped. A node that points back makes
  // a loop: depth and records bound it.
  void trie() {
    if (trie_.size()) trie_node(0, "", 0);
  }

  void trie_node(uint64_t at, const std::string& prefix, int depth) {
    if (depth > 256 || prefix.size() > ByteView::kLongestText || at >= trie_.size()) return;
    const uint64_t terminal = uleb(at);
    if (terminal && !prefix.empty()) budget_.add(image_.exported, c_name(prefix));
    at += std::min(terminal, trie_.size());
    const uint8_t children = trie_.u8(at++);
    for (int i = 0; i < children && at < trie_.size() && budget_.records(1 + prefix.size() / 64); i++) {
      const std::string edge = trie_.text(at);
      at += edge.size() + 1;
      trie_node(uleb(at), prefix + edge, depth + 1);
    }
  }

  ByteView view_, strings_, trie_;
  InspectionBudget& budget_;
  ImageDraft& draft_;
  BinaryImage& image_;
  bool wide_ = false;
  uint64_t symbols_ = 0, count_ = 0;
};

}  // namespace

bool is_macho(const ByteView& v) {
  for (bool big : {false, true})
    if (const uint32_t m = v.swapped(big).u32(0); m == kMagic32 || m == kMagic64) return true;
  return false;
}

// Class files of Java begin with the same number; the next one is their version, 45 or more.
bool is_fat_macho(const ByteView& v) {
  const uint32_t magic = v.swapped(true).u32(0), count = v.swapped(true).u32(4);
  return magic == kFat64 || (magic == kFat32 && count < 45);
}

Result<std::vector<BinarySlice>> fat_slices(const ByteView& view, InspectionBudget& budget) {
  const ByteView v = view.swapped(true);
  const bool wide = v.u32(0) == kFat64;
  const uint32_t count = v.u32(4), each = wide ? 32 : 20;
  if (!count || count > kMostSlices)
    return malformed_image(format("is a fat file of {} slices: expected from 1 to {}", count, kMostSlices));
  if (!v.has_table(8, count, each))
    return truncated_image("list of slices", 8 + uint64_t(count) * each, v.size());
  std::vector<BinarySlice> slices;
  for (uint32_t i = 0; i < count && budget.records(); i++) {
    const uint64_t p = 8 + uint64_t(i) * each;
    const BinarySlice s =
        wide ? BinarySlice{v.u64(p + 8), v.u64(p + 16)} : BinarySlice{v.u32(p + 8), v.u32(p + 12)};
    if (!v.has(s.offset, s.size))
      return truncated_image("slices", checked_add(s.offset, s.size).value_or(UINT64_MAX), v.size());
    slices.push_back(s);
  }
  return slices;
}

Status read_macho(ByteView view, InspectionBudget& budget, ImageDraft& draft) {
  return MachOReader(view, budget, draft).read();
}

}  // namespace gimbal
