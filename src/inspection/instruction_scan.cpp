// The scan of an image's executable sections: all of them up to a limit, samples of larger ones.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "inspection/image_reader.h"
#include "inspection/instructions.h"

namespace gimbal {
namespace {

constexpr uint64_t kPiece = 256 << 10;
constexpr size_t kUncertain = 16;  // instructions at the beginning of a sample
constexpr uint64_t kCertain = 8;   // instructions of a family
constexpr uint64_t kPerUndecoded = 64;

// Tables between functions decode as instructions. Where all bytes decode there are none; for ARM every word
// is an instruction or unknown, so only the count tells. Random bytes give at most one false instruction of a
// family per 64 that decode as none.
void mark_doubtful(CpuInstructions& cpu, bool all_decoded) {
  for (auto& f : cpu.families)
    f.doubtful = !all_decoded && f.count < std::max(kCertain, cpu.undecoded / kPerUndecoded);
}

}  // namespace

const char* name_of(InstructionFamily f) {
  constexpr const char* kNames[] = {
#define GIMBAL_INSTRUCTIONS(id, name, flag) name,
#include "inspection/instruction_families.def"
#undef GIMBAL_INSTRUCTIONS
  };
  return kNames[size_t(f)];
}

const char* flag_of(InstructionFamily f) {
  constexpr const char* kFlags[] = {
#define GIMBAL_INSTRUCTIONS(id, name, flag) flag,
#include "inspection/instruction_families.def"
#undef GIMBAL_INSTRUCTIONS
  };
  return kFlags[size_t(f)];
}

void add_families(std::vector<CpuInstructions::Family>& to,
                  const std::vector<CpuInstructions::Family>& from) {
  std::vector<CpuInstructions::Family> all;
  for (size_t f = 0; f < size_t(InstructionFamily::Count); f++) {
    CpuInstructions::Family sum{name_of(InstructionFamily(f)), 0, true};
    for (const auto* list : {&std::as_const(to), &from})
      for (const auto& one : *list)
        if (one.name == sum.name) sum.count += one.count, sum.doubtful &= one.doubtful;
    if (sum.count) all.push_back(std::move(sum));
  }
  to = std::move(all);
}

void scan_instructions(ImageDraft& draft, InspectionBudget& budget) {
  CpuInstructions& cpu = draft.image.cpu;
  for (const BinarySection& s : draft.sections)
    if (s.executable) cpu.bytes += s.size;
  const bool x86 = draft.image.machine.starts_with("x86-64"),
             arm = draft.image.machine.starts_with("arm64") && draft.image.machine != "arm64_32";
  if (!cpu.bytes) return void(cpu.not_scanned = "it has no code");
  if ((!x86 && !arm) || draft.image.big_endian)
    return void(cpu.not_scanned = format("the instructions of {} are unknown here", draft.image.machine));
  const uint64_t granted = budget.take_code(cpu.bytes);
  InstructionCounts counts;
  std::vector<uint8_t> piece(size_t(std::min(kPiece, granted)));
  for (const BinarySection& s : draft.sections) {
    if (!s.executable || !s.size) continue;
    // Each section gets its share, in pieces that are spread evenly over it.
    const uint64_t share =
        granted == cpu.bytes ? s.size : uint64_t(double(granted) / double(cpu.bytes) * double(s.size));
    const uint64_t pieces = (share + kPiece - 1) / kPiece, step = pieces ? s.size / pieces / 4 * 4 : 0;
    for (uint64_t i = 0, left = share; i < pieces; i++) {
      const uint64_t at = share == s.size ? i * kPiece : i * step, n = std::min({kPiece, left, s.size - at});
      if (!draft.view.copy_uncached(s.offset + at, piece.data(), size_t(n))) return;
      const std::span<const uint8_t> code(piece.data(), size_t(n));
      x86 ? count_x86_64(code, i ? kUncertain : 0, counts) : count_arm64(code, counts);
      left -= n, cpu.scanned += n;
    }
  }
  cpu.undecoded = counts.undecoded;
  for (size_t f = 0; f < counts.of.size(); f++)
    if (counts.of[f]) cpu.families.push_back({name_of(InstructionFamily(f)), counts.of[f], false});
  mark_doubtful(cpu, x86 && !counts.undecoded);
}

}  // namespace gimbal
