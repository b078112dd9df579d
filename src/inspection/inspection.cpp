#include "inspection/inspection.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "base/text.h"
#include "inspection/image_reader.h"

namespace gimbal {

void NameList::add(std::string_view name) {
  text_.append(name);
  ends_.push_back(uint32_t(text_.size()));
}

std::string_view NameList::operator[](size_t i) const {
  const uint32_t begin = i ? ends_[i - 1] : 0;
  return std::string_view(text_).substr(begin, ends_[i] - begin);
}

void NameList::sort() {
  std::vector<uint32_t> order(ends_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) { return (*this)[a] < (*this)[b]; });
  NameList sorted;
  sorted.text_.reserve(text_.size());
  sorted.ends_.reserve(ends_.size());
  for (size_t i = 0; i < order.size(); i++)
    if (!i || (*this)[order[i]] != (*this)[order[i - 1]]) sorted.add((*this)[order[i]]);
  sorted.text_.shrink_to_fit();
  sorted.skipped_ = skipped_;
  *this = std::move(sorted);
}

void NameList::remove(const NameList& other) {
  NameList rest;
  for (size_t i = 0, o = 0; i < kept(); i++) {
    while (o < other.kept() && other[o] < (*this)[i]) o++;
    if (o == other.kept() || other[o] != (*this)[i]) rest.add((*this)[i]);
  }
  rest.skipped_ = skipped_;
  *this = std::move(rest);
}

bool InspectionBudget::records(uint64_t n) {
  if (n > left_.records) {
    exhausted_ = true;
    left_.records = 0;
    return false;
  }
  left_.records -= n;
  return true;
}

void InspectionBudget::add(NameList& to, std::string_view name) {
  records(name.size() / 64);
  const uint64_t bytes = name.size() + sizeof(uint32_t);
  if (bytes > left_.name_bytes) return names_dropped_ = true, to.skip();
  left_.name_bytes -= bytes;
  to.add(name);
}

void InspectionBudget::add(std::vector<std::string>& to, std::string name) {
  const uint64_t bytes = name.size() + sizeof name;
  if (bytes > left_.name_bytes) return void(names_dropped_ = true);
  left_.name_bytes -= bytes;
  to.push_back(std::move(name));
}

uint64_t InspectionBudget::take_code(uint64_t wanted) {
  const uint64_t granted = std::min(wanted, left_.code_bytes);
  left_.code_bytes -= granted;
  return granted;
}

uint64_t InspectionBudget::take_data(uint64_t wanted) {
  const uint64_t granted = std::min(wanted, left_.data_bytes);
  left_.data_bytes -= granted;
  return granted;
}

Error malformed_image(std::string predicate) { return {Code::Malformed, std::move(predicate), ""}; }

Error truncated_image(const char* part, uint64_t needed, uint64_t size) {
  return malformed_image(
      needed == UINT64_MAX
          ? format("is damaged: the end of its {} is beyond every file", part)
          : format("is truncated: the end of its {} is at byte {}, but it has {}", part, needed, size));
}

std::string hexadecimal(const ByteView& v, uint64_t at, size_t bytes) {
  std::string s;
  for (size_t i = 0; i < bytes && v.has(at + i, 1); i++) s += format("{:02x}", v.u8(at + i));
  return s;
}

namespace {

Error no_library(const ByteView& v) {
  if (v.size() == 0) return malformed_image("is empty, not a library");
  const std::string begin = v.field(0, size_t(std::min<uint64_t>(v.size(), 8)));
  const char* known =
      begin.starts_with("#!")         ? " (it is a script)"
      : begin.starts_with("GGUF")     ? " (it is a model file)"
      : begin.starts_with("PK\3\4")   ? " (it is a zip file: unpack it first)"
      : begin.starts_with("\x1f\x8b") ? " (it is a gzip file: unpack it first)"
      : begin.starts_with("INPUT") || begin.starts_with("GROUP") || begin.starts_with("/* GNU l")
          ? " (it is a linker script, which names other files)"
      : begin.starts_with("BC\xc0\xde") ? " (it is LLVM bitcode)"
                                        : "";
  return malformed_image(
      format("is no library{}: it begins with {}, expected ELF, Mach-O, PE, COFF or a static archive", known,
             gimbal::quoted(begin)));
}

class FileInspector {
 public:
  FileInspector(Inspection& to, InspectionBudget& budget) : to_(to), budget_(budget) {}

  Status file(const ByteView& v) {
    if (is_archive(v)) return archive(v);
    if (!is_fat_macho(v)) return image(v);
    auto slices = fat_slices(v, budget_);
    if (!slices) return slices.error();
    to_.container = "fat Mach-O";
    for (const BinarySlice& s : *slices) {
      const ByteView part = v.part(s.offset, s.size);
      if (auto done = is_archive(part) ? archive(part) : image(part); !done)
        return malformed_image(format("has a slice at byte {} that {}", s.offset, done.error().message));
    }
    return Done{};
  }

 private:
  Status archive(const ByteView& v) {
    auto kind = read_archive(v, budget_, to_.images);
    if (!kind) return kind.error();
    to_.container += (to_.container.empty() ? "" : " of ") + *kind;
    return Done{};
  }

  Status image(const ByteView& v) {
    ImageDraft draft;
    Status s = Done{};
    if (is_elf(v)) s = read_elf(v, budget_, draft);
    else if (is_macho(v)) s = read_macho(v, budget_, draft);
    else if (v.starts_with(0, "MZ")) s = read_pe(v, budget_, draft);
    else if (is_import_member(v)) s = read_import_member(v, budget_, draft);
    else if (is_coff_object(v)) s = read_coff_object(v, budget_, draft);
    else return no_library(v);
    if (!s) return s;
    find_gpu_code(draft, budget_);
    scan_instructions(draft, budget_);
    draft.image.exported.sort();
    draft.image.undefined.sort();
    to_.images.push_back(std::move(draft.image));
    return Done{};
  }

  Inspection& to_;
  InspectionBudget& budget_;
};

Result<Inspection> inspect(BinarySource source, const std::string& name, const InspectionLimits& limits) {
  Inspection found;
  found.path = name, found.bytes = source.size();
  InspectionBudget budget(limits);
  const Status s = FileInspector(found, budget).file(ByteView(source));
  if (source.failure()) return *source.failure();
  if (!s) return Error{s.error().code, format("'{}' {}", escaped(name), s.error().message), s.error().remedy};
  if (budget.exhausted())
    found.images.front().notes.push_back(
        format("it has more than {} table entries: the rest was not read", limits.records));
  if (budget.names_dropped())
    found.images.front().notes.push_back(format(
        "its names take more than {}: the rest was counted, and not kept", human_bytes(limits.name_bytes)));
  return found;
}

}  // namespace

Result<Inspection> inspect_library(const std::string& path, const InspectionLimits& limits) {
  auto source = BinarySource::open(path);
  if (!source) return source.error();
  return inspect(std::move(*source), path, limits);
}

Result<Inspection> inspect_library(Bytes file, const std::string& name, const InspectionLimits& limits) {
  return inspect(BinarySource(file), name, limits);
}

}  // namespace gimbal
