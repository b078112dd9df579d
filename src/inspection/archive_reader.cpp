// Static archives: the members' objects of any format, with the symbol tables of GNU, BSD and Microsoft.
#include <algorithm>
#include <charconv>
#include <map>

#include "base/format.h"
#include "base/text.h"
#include "inspection/image_reader.h"

namespace gimbal {
namespace {

constexpr uint64_t kHead = 60;
constexpr size_t kMostMachines = 16;

struct Member {
  std::string name;
  uint64_t offset, size;
};

class ArchiveReader {
 public:
  ArchiveReader(const ByteView& view, InspectionBudget& budget, std::vector<BinaryImage>& images)
      : view_(view), budget_(budget), images_(images) {}

  Result<std::string> read() {
    thin_ = view_.starts_with(0, "!<thin>\n");
    uint64_t at = 8;
    while (at < view_.size() && budget_.records()) {
      auto m = member(at);
      if (!m) return m.error();
      if (auto s = take(*m); !s) return s.error();
      const bool outside = thin_ && !is_table(m->name);
      at = align_up(outside ? at + kHead : m->offset + m->size, 2);
    }
    finish();
    return kind_.empty() ? std::string(thin_ ? "thin archive" : "archive without a symbol table")
                         : format("{} {}", kind_, thin_ ? "thin archive" : "archive");
  }

 private:
  static bool is_table(const std::string& name) {
    return name == "/" || name == "//" || name == "/SYM64/" || name.starts_with("__.SYMDEF");
  }

  Result<Member> member(uint64_t at) {
    if (!view_.has(at, kHead)) return truncated_image("member headers", at + kHead, view_.size());
    if (!view_.starts_with(at + 58, "`\n"))
      return malformed_image(format("has no member at byte {}, where one should begin", at));
    const std::string digits(trimmed(view_.field(at + 48, 10)));
    uint64_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc() || end != digits.data() + digits.size())
      return malformed_image(format("has a member of size {} at byte {}", gimbal::quoted(digits), at));
    Member m{std::string(trimmed(view_.field(at, 16), " ")), at + kHead, size};
    if (!(thin_ && !is_table(m.name)) && !view_.has(m.offset, size))
      return truncated_image("members", m.offset + size, view_.size());
    if (m.name.starts_with("#1/")) {  // BSD: the name is the first part of the contents
      uint64_t length = 0;
      std::from_chars(m.name.data() + 3, m.name.data() + m.name.size(), length);
      if (length > size || length > ByteView::kLongestText)
        return malformed_image(format("has a member whose name of {} bytes exceeds its contents", length));
      m.name = view_.field(m.offset, size_t(length));
      m.offset += length, m.size -= length;
      if (kind_.empty()) kind_ = "BSD";
    }
    return m;
  }

  Status take(const Member& m) {
    if (m.name == "/" || m.name == "/SYM64/") return symbol_table(m);
    if (m.name == "//") return Done{};
    if (m.name.starts_with("__.SYMDEF")) {
      kind_ = "BSD";
      return Done{};
    }
    members_++;
    if (thin_) return Done{};
    const ByteView v = view_.part(m.offset, m.size);
    ImageDraft draft;
    Status s = Done{};
    if (is_elf(v)) s = read_elf(v, budget_, draft);
    else if (is_macho(v)) s = read_macho(v, budget_, draft);
    else if (is_import_member(v)) s = read_import_member(v, budget_, draft);
    else if (is_coff_object(v)) s = read_coff_object(v, budget_, draft);
    else if (v.starts_with(0, "BC\xc0\xde") || v.u32(0) == 0x0b17c0de) return bitcode_++, Done{};
    else return others_++, Done{};
    if (!s)
      return malformed_image(format("has a member {} that {}", gimbal::quoted(m.name), s.error().message));
    find_gpu_code(draft, budget_);
    scan_instructions(draft, budget_);
    merge(std::move(draft.image));
    return Done{};
  }

  // Names come from the members; the table tells the kind, and is all that a thin archive has.
  Status symbol_table(const Member& m) {
    if (m.name == "/" && tables_++ > 0) {
      kind_ = "COFF";  // only Microsoft's have a second one
      return Done{};
    }
    if (kind_.empty()) kind_ = "GNU";
    if (!thin_) return Done{};
    const bool wide = m.name == "/SYM64/";
    const ByteView v = view_.part(m.offset, m.size).swapped(true);
    const uint64_t count = wide ? v.u64(0) : v.u32(0), each = wide ? 8 : 4;
    if (!v.has_table(each, count, each))
      return truncated_image("symbol table", m.offset + m.size, view_.size());
    BinaryImage& image = image_for("", "unknown", 0);
    uint64_t at = each + count * each;
    for (uint64_t i = 0; i < count && at < v.size() && budget_.records(); i++) {
      const std::string name = v.text(at);
      at += name.size() + 1;
      if (!name.empty()) budget_.add(image.exported, name);
    }
    return Done{};
  }

  BinaryImage& image_for(const std::string& format, const std::string& machine, int bits) {
    for (BinaryImage& i : images_)
      if (i.machine == machine && i.format == format) return i;
    if (images_.size() >= kMostMachines) return images_.back();
    BinaryImage i;
    i.format = format, i.machine = machine, i.bits = bits;
    i.type = "static archive";
    i.stripped = true;
    images_.reserve(kMostMachines);  // list_size_ points into them
    images_.push_back(std::move(i));
    return images_.back();
  }

  void merge(BinaryImage from) {
    BinaryImage& to = image_for(from.format, from.machine, from.bits);
    to.members++;
    to.big_endian = from.big_endian;
    to.stripped &= from.stripped;
    for (size_t i = 0; i < from.exported.kept(); i++) to.exported.add(from.exported[i]);
    for (size_t i = 0; i < from.undefined.kept(); i++) to.undefined.add(from.undefined[i]);
    for (NameList* list : {&to.exported, &to.undefined}) {
      list->skip(list == &to.exported ? from.exported.skipped() : from.undefined.skipped());
      compact(*list);
    }
    for (std::string& n : from.needed)
      if (std::find(to.needed.begin(), to.needed.end(), n) == to.needed.end())
        to.needed.push_back(std::move(n));
    for (std::string& n : from.opens)
      if (std::find(to.opens.begin(), to.opens.end(), n) == to.opens.end()) to.opens.push_back(std::move(n));
    for (EmbeddedGpuCode& g : from.gpu_code) add_gpu_code(to.gpu_code, std::move(g));
    to.cpu.not_scanned = from.cpu.not_scanned;
    to.cpu.bytes += from.cpu.bytes, to.cpu.scanned += from.cpu.scanned,
        to.cpu.undecoded += from.cpu.undecoded;
    add_families(to.cpu.families, from.cpu.families);
    for (std::string& n : from.notes)
      if (to.notes.size() < 8) to.notes.push_back(std::move(n));
  }

  // Most members need the same names: they give their memory back.
  void compact(NameList& list) {
    uint64_t& at = list_size_[&list];
    if (list.bytes() < 2 * at + (uint64_t(1) << 16)) return;
    const uint64_t before = list.bytes();
    list.sort();
    at = list.bytes();
    budget_.give_back_names(before - at);
  }

  void finish() {
    if (images_.empty()) image_for("", "unknown", 0);
    for (BinaryImage& i : images_) {
      i.exported.sort(), i.undefined.sort();
      i.undefined.remove(i.exported);
    }
    BinaryImage& first = images_.front();
    if (thin_) {
      first.members = members_;
      first.notes.push_back(
          "a thin archive: its members are files of their own, only its table of symbols was read");
    }
    if (bitcode_)
      first.notes.push_back(format(
          "{} members are LLVM bitcode (link-time optimization), whose symbols were not read", bitcode_));
    if (others_) first.notes.push_back(format("{} members are no objects", others_));
  }

  const ByteView view_;
  InspectionBudget& budget_;
  std::vector<BinaryImage>& images_;
  bool thin_ = false;
  int tables_ = 0;
  std::map<const NameList*, uint64_t> list_size_;  // after the last compact()
  uint64_t members_ = 0, bitcode_ = 0, others_ = 0;
  std::string kind_;
};

}  // namespace

bool is_archive(const ByteView& v) { return v.starts_with(0, "!<arch>\n") || v.starts_with(0, "!<thin>\n"); }

Result<std::string> read_archive(const ByteView& view, InspectionBudget& budget,
                                 std::vector<BinaryImage>& images) {
  return ArchiveReader(view, budget, images).read();
}

}  // namespace gimbal
