// Code for GPUs inside a library. NVIDIA's fatbins and clang's offload bundles are walked by their headers,
// so megabytes of machine code cost a few reads. Other data is searched for what such code begins with.
#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "inspection/driver_names.h"
#include "inspection/gpu_marks.h"
#include "inspection/image_reader.h"

namespace gimbal {
namespace {

constexpr std::string_view kBundleName = "__CLANG_OFFLOAD_BUNDLE__";
constexpr size_t kMostTargets = 256;

// LLVM's "User Guide for AMDGPU Backend", table of e_flags.
std::string gfx_name(uint32_t mach) {
  static constexpr struct {
    uint8_t mach;
    const char* name;
  } kNames[] = {
      {0x20, "gfx600"},        {0x21, "gfx601"},       {0x22, "gfx700"},          {0x23, "gfx701"},
      {0x24, "gfx702"},        {0x25, "gfx703"},       {0x26, "gfx704"},          {0x28, "gfx801"},
      {0x29, "gfx802"},        {0x2a, "gfx803"},       {0x2b, "gfx810"},          {0x2c, "gfx900"},
      {0x2d, "gfx902"},        {0x2e, "gfx904"},       {0x2f, "gfx906"},          {0x30, "gfx908"},
      {0x31, "gfx909"},        {0x32, "gfx90c"},       {0x33, "gfx1010"},         {0x34, "gfx1011"},
      {0x35, "gfx1012"},       {0x36, "gfx1030"},      {0x37, "gfx1031"},         {0x38, "gfx1032"},
      {0x39, "gfx1033"},       {0x3a, "gfx602"},       {0x3b, "gfx705"},          {0x3c, "gfx805"},
      {0x3d, "gfx1035"},       {0x3e, "gfx1034"},      {0x3f, "gfx90a"},          {0x40, "gfx940"},
      {0x41, "gfx1100"},       {0x42, "gfx1013"},      {0x43, "gfx1150"},         {0x44, "gfx1103"},
      {0x45, "gfx1036"},       {0x46, "gfx1101"},      {0x47, "gfx1102"},         {0x48, "gfx1200"},
      {0x4a, "gfx1151"},       {0x4b, "gfx941"},       {0x4c, "gfx942"},          {0x4e, "gfx1201"},
      {0x4f, "gfx950"},        {0x51, "gfx9-generic"}, {0x52, "gfx10-1-generic"}, {0x53, "gfx10-3-generic"},
      {0x54, "gfx11-generic"}, {0x55, "gfx1152"},      {0x58, "gfx1153"},         {0x59, "gfx12-generic"},
      {0x5f, "gfx9-4-generic"}};
  for (const auto& n : kNames)
    if (n.mach == mach) return n.name;
  return format("gfx {:#x}", mach);
}

bool is_debug_or_table(const std::string& name) {
  for (const char* part :
       {"debug", ".eh_frame", ".gcc_except", ".dynsym", ".dynstr", ".symtab", ".strtab", ".shstrtab", ".rel",
        ".gnu.", ".hash", "__LINKEDIT", "__DWARF", ".pdata", ".xdata", "__eh_frame", "__unwind_info"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

class GpuCodeFinder {
 public:
  GpuCodeFinder(ImageDraft& draft, InspectionBudget& budget)
      : view_(draft.view.swapped(false)), draft_(draft), budget_(budget) {}

  void find() {
    for (const BinarySection& s : draft_.sections)
      if (!s.executable && s.size >= 16 && !is_debug_or_table(s.name)) section(s);
    if (!texts_searched_) draft_.image.notes.push_back("only a part of its data was searched for GPU code");
  }

 private:
  // Words at multiples of 4, as compilers align embedded data. The bytes of found code are skipped.
  void section(const BinarySection& s) {
    const uint64_t end = s.offset + s.size;
    uint64_t at = align_up(s.offset, 4), searched = 0;
    while (at + 16 <= end) {
      const uint64_t n = std::min<uint64_t>(sizeof piece_, end - at);
      if (budget_.take_data(n) < n) return void(texts_searched_ = false);
      if (!view_.copy_uncached(at, piece_, size_t(n))) return;
      piece_at_ = at, piece_end_ = end;
      const uint64_t skip_to = words(at, end, size_t(n), searched < kTextBytes);
      searched += n;
      at = std::max(skip_to, at + n / 4 * 4);
      if (n < 4) return;
    }
  }

  // Returns the end of the code that was found last in this piece. Texts are searched between such code.
  uint64_t words(uint64_t at, uint64_t end, size_t n, bool and_texts) {
    uint64_t skip_to = 0;
    size_t gap = 0;
    const size_t count = n / 4;
    for (size_t first = 0; first < count; first += kMarkedWords) {
      const size_t last = std::min(count, first + kMarkedWords);
      const bool hit = last - first < kMarkedWords || has_gpu_mark(piece_ + first);
      if (!hit) continue;
      for (size_t i = first; i < last; i++) {
        const uint64_t here = at + i * 4;
        if (here < skip_to) continue;
        const uint64_t bytes = std::min(code_at(piece_[i], here, end), end - here);
        if (!bytes) continue;
        if (and_texts && i * 4 > gap) texts(gap, i * 4);
        skip_to = here + bytes;
        gap = size_t(std::min<uint64_t>(i * 4 + bytes, n));
      }
    }
    if (and_texts && gap < n) texts(gap, n);
    return skip_to;
  }

  // The bytes of the code that begins here; 0 if none does.
  uint64_t code_at(uint32_t word, uint64_t at, uint64_t end) {
    switch (word) {
      case kFatbin: return budget_.records() ? fatbin(at, end) : 0;
      case kBundle: return budget_.records() ? bundle(at, end) : 0;
      case kPackedBundle: return budget_.records() ? packed_bundle(at, end) : 0;
      case kElf: return budget_.records() ? elf(at, end) : 0;
      case kSpirv: return budget_.records() ? spirv(at, end) : 0;
      default: return 0;
    }
  }

  // A header of 16 bytes, then entries with headers of their own: the machine code of one architecture, or
  // PTX. CUDA's fatbinary.h describes it no further; the fields are those that its tools print.
  uint64_t fatbin(uint64_t at, uint64_t end) {
    const uint16_t version = view_.u16(at + 4), header = view_.u16(at + 6);
    const uint64_t size = view_.u64(at + 8);
    if (version != 1 || header < 16 || header > 64 || size > end - at - header) return 0;
    EmbeddedGpuCode found{"NVIDIA fatbin", {}, 0, header + size};
    const uint64_t stop = at + header + size;
    for (uint64_t p = at + header; p + 32 <= stop && budget_.records();) {
      const uint16_t kind = view_.u16(p);
      const uint32_t own = view_.u32(p + 4), arch = view_.u32(p + 28);
      const uint64_t bytes = view_.u64(p + 8);
      if (kind < 1 || kind > 64 || own < 32 || own > 4096 || bytes > stop - p) break;
      found.pieces++;
      add_target(found, format("{}_{}", kind == 1 ? "compute" : "sm", arch));
      p += own + bytes;
    }
    add_gpu_code(draft_.image.gpu_code, std::move(found));
    return header + size;
  }

  uint64_t bundle(uint64_t at, uint64_t end) {
    if (!view_.starts_with(at, kBundleName)) return 0;
    const uint64_t count = view_.u64(at + 24);
    if (count > 4096) return 0;
    EmbeddedGpuCode found{"AMD code object", {}, 0, 0};
    uint64_t p = at + 32, extent = 32;
    for (uint64_t i = 0; i < count && p + 24 <= end && budget_.records(); i++) {
      const uint64_t offset = view_.u64(p), bytes = view_.u64(p + 8), length = view_.u64(p + 16);
      if (length > 256 || offset > end - at || bytes > end - at - offset) break;
      const std::string triple = view_.field(p + 24, size_t(length));
      p += 24 + length;
      extent = std::max({extent, offset + bytes, p - at});
      if (triple.starts_with("host")) continue;
      found.pieces++, found.bytes += bytes;
      const size_t dash = triple.rfind("--");
      if (dash != std::string::npos) add_target(found, triple.substr(dash + 2));
    }
    if (!found.pieces) return 0;
    add_gpu_code(draft_.image.gpu_code, std::move(found));
    return extent;
  }

  uint64_t packed_bundle(uint64_t at, uint64_t end) {
    const uint16_t version = view_.u16(at + 4), method = view_.u16(at + 6);
    if (version < 1 || version > 3 || method > 1) return 0;
    const uint64_t total = version == 1 ? 0 : version == 2 ? view_.u32(at + 8) : view_.u64(at + 8);
    // Behind the header begins a frame of zstd, or a stream of zlib.
    const uint64_t content = at + (version == 1 ? 20 : version == 2 ? 24 : 32);
    const bool packed = method == 1 ? view_.u32(content) == 0xfd2fb528 : view_.u8(content) == 0x78;
    if (total > end - at || !packed) return 0;
    add_gpu_code(draft_.image.gpu_code, {"compressed AMD code object", {}, 1, total});
    return total;
  }

  uint64_t elf(uint64_t at, uint64_t end) {
    if (end - at < 64 || view_.u8(at + 4) != 2) return 0;
    const uint16_t machine = view_.u16(at + 18);
    const uint32_t flags = view_.u32(at + 48);
    if (machine != 190 && machine != 224) return 0;
    EmbeddedGpuCode found{machine == 190 ? "CUDA binary" : "AMD code object", {}, 1, 0};
    // From ABI version 8 on, the architecture of NVIDIA's files is in the second byte.
    if (machine == 190)
      add_target(found, format("sm_{}", view_.u8(at + 8) >= 8 ? flags >> 8 & 0xff : flags & 0xff));
    else add_target(found, gfx_name(flags & 0xff));
    const uint64_t sections = view_.u64(at + 40),
                   size = sections + uint64_t(view_.u16(at + 58)) * view_.u16(at + 60);
    if (sections < end - at && size <= end - at) found.bytes = size;
    const uint64_t bytes = std::max<uint64_t>(found.bytes, 64);
    add_gpu_code(draft_.image.gpu_code, std::move(found));
    return bytes;
  }

  uint64_t metal(uint64_t at, uint64_t end) {
    const uint64_t size = view_.u64(at + 16);
    if (size < 88 || size > end - at) return 0;
    add_gpu_code(draft_.image.gpu_code, {"Metal library", {}, 1, size});
    return size;
  }

  // A module begins with its version, a bound, a reserved 0, and the declaration of a capability.
  uint64_t spirv(uint64_t at, uint64_t end) {
    const uint32_t version = view_.u32(at + 4), bound = view_.u32(at + 12);
    if (end - at < 28 || version >> 16 != 1 || (version & 0xff) || (version >> 8 & 0xff) > 9 || !bound ||
        view_.u32(at + 16) || view_.u32(at + 20) != 0x00020011)
      return 0;
    uint64_t p = at + 20;
    while (p + 4 <= end && p - at < kLongestModule && budget_.records()) {
      const uint32_t w = view_.u32(p), words = w >> 16, op = w & 0xffff;
      if (!words || op > 0x3fff || words * uint64_t(4) > end - p) break;
      p += words * uint64_t(4);
    }
    add_gpu_code(draft_.image.gpu_code,
                 {"SPIR-V", {format("SPIR-V {}.{}", version >> 16, version >> 8 & 0xff)}, 1, p - at});
    return p - at;
  }

  // Sources that a driver compiles, and Metal's libraries, which have no alignment. A mark is a part of the
  // text, and its neighbours are checked: programs that search for marks contain them.
  void texts(size_t from, size_t to) {
    const std::string_view data(reinterpret_cast<const char*>(piece_) + from, to - from);
    drivers(data);
    for_each(data, "target sm_", [&](std::string_view rest) {
      if (rest.data() - data.data() < 11 || rest.data()[-11] != '.') return budget_.records();
      const size_t digits = rest.find_first_not_of("0123456789");
      if (digits == 0 || digits == std::string_view::npos || digits > 4) return budget_.records();
      EmbeddedGpuCode code{"PTX", {}, 1, 0};
      const size_t end = rest.find_first_not_of("0123456789af");
      add_target(code, "sm_" + std::string(rest.substr(0, std::min<size_t>(end, 5))));
      add_gpu_code(draft_.image.gpu_code, std::move(code));
      return budget_.records();
    });
    for_each(data, "MTLB", [&](std::string_view rest) {
      metal(piece_at_ + uint64_t(rest.data() - reinterpret_cast<const char*>(piece_)) - 4, piece_end_);
      return budget_.records();
    });
    for (auto [mark, behind, kind] : {std::tuple("<metal_std", "l", "Metal source"),
                                      {"__kernel", " \r\n", "OpenCL source"},
                                      {"@compute", " \r\n", "WGSL source"}})
      for_each(data, mark, [&, behind = std::string_view(behind), kind = kind](std::string_view rest) {
        if (found(kind)) return false;
        if (rest.empty() || behind.find(rest[0]) == std::string_view::npos) return budget_.records();
        add_gpu_code(draft_.image.gpu_code, {kind, {}, 1, 0});
        return false;
      });
  }

  // Names of drivers that a library opens when it runs: whole texts between zeros, such as "libcuda.so.1".
  void drivers(std::string_view data) {
    constexpr size_t kLongestName = 24;
    for (size_t dot = data.find('.'); dot != std::string_view::npos; dot = data.find('.', dot + 1)) {
      const size_t from =
          dot - std::min(dot, kLongestName);  // windows, so that texts full of dots cost no more
      const std::string_view left = data.substr(from, dot - from), right = data.substr(dot, kLongestName);
      const size_t before = left.rfind('\0'), end = right.find('\0');
      if (before == std::string_view::npos || end == std::string_view::npos) continue;
      const std::string_view text = data.substr(from + before + 1, dot + end - (from + before + 1));
      if (!is_driver_name(text)) continue;
      auto& opens = draft_.image.opens;
      if (opens.size() < kMostTargets && std::find(opens.begin(), opens.end(), text) == opens.end())
        opens.emplace_back(text);
    }
  }

  // Calls `take` with what follows each mark, until it returns false.
  template <class Take>
  static void for_each(std::string_view data, std::string_view mark, Take take) {
    for (size_t at = data.find(mark); at != std::string_view::npos; at = data.find(mark, at + 1))
      if (!take(data.substr(at + mark.size()))) return;
  }

  bool found(std::string_view kind) const {
    for (const EmbeddedGpuCode& g : draft_.image.gpu_code)
      if (g.kind == kind) return true;
    return false;
  }

  static void add_target(EmbeddedGpuCode& to, std::string target) {
    const auto at = std::lower_bound(to.targets.begin(), to.targets.end(), target);
    if ((at == to.targets.end() || *at != target) && to.targets.size() < kMostTargets)
      to.targets.insert(at, std::move(target));
  }

  static constexpr uint64_t kTextBytes = 32 << 20;  // of a section
  static constexpr uint64_t kLongestModule = 8 << 20;

  const ByteView view_;  // GPU code is little-endian, whatever its library is
  ImageDraft& draft_;
  InspectionBudget& budget_;
  bool texts_searched_ = true;
  uint64_t piece_at_ = 0, piece_end_ = 0;  // place of the piece, and the end of its section
  uint32_t piece_[64 << 10];
};

// sm_9 before sm_10.
bool less_by_number(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& s) {
    const size_t at = s.find_first_of("0123456789");
    return at == std::string::npos ? std::string() : s.substr(at, s.find_first_not_of("0123456789", at) - at);
  };
  const std::string x = number(a), y = number(b);
  if (a.substr(0, a.find(x)) == b.substr(0, b.find(y)) && x.size() != y.size()) return x.size() < y.size();
  return a < b;
}

}  // namespace

void add_gpu_code(std::vector<EmbeddedGpuCode>& to, EmbeddedGpuCode found) {
  for (EmbeddedGpuCode& g : to)
    if (g.kind == found.kind) {
      g.pieces += found.pieces, g.bytes += found.bytes;
      for (std::string& t : found.targets)
        if (std::find(g.targets.begin(), g.targets.end(), t) == g.targets.end() &&
            g.targets.size() < kMostTargets)
          g.targets.push_back(std::move(t));
      return std::sort(g.targets.begin(), g.targets.end(), less_by_number);
    }
  to.push_back(std::move(found));
}

void find_gpu_code(ImageDraft& draft, InspectionBudget& budget) {
  const auto finder = std::make_unique<GpuCodeFinder>(draft, budget);  // 256 kB, too much for a stack
  finder->find();
}

}  // namespace gimbal
