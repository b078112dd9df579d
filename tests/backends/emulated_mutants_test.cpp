// A kernel text with one wrong word must not pass: mutants.txt names words of every text and wrong ones to
// put there; conformance has to notice each, and to accept the very same texts without it.
#include "backends/emulator/runtime.h"
#include "gpu/modules.h"
#include "gpu/mutants_checks.h"

namespace gimbal::simt {
std::span<const KernelCode> mutant_emulator_modules();
}

namespace gimbal::test {
namespace {

constexpr Mutant kMutants[] = {
#define MUTANT(name, kernel, row, change) {name, kernel, row, change},
#include "mutants.inc"
#undef MUTANT
};

struct Emulator {
  static std::span<const simt::KernelCode> mutants() { return simt::mutant_emulator_modules(); }
  static std::span<const simt::KernelCode> kernels() { return simt::emulator_modules(); }
  static simt::Failure open(simt::Options&, std::unique_ptr<simt::Runtime>* out) {
    emulator::Options o;
    o.bounds = true;
    *out = emulator::open(o);
    return {};
  }
};

TEST(EmulatedMutants, AreAllFoundAndTheUnchangedTextsPass) { check_mutants<Emulator>(kMutants, 30, 15); }

}  // namespace
}  // namespace gimbal::test
