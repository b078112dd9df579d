// A kernel text with one wrong word must not pass: mutants.txt names words of every text and wrong ones to
// put there; conformance has to notice each, and to accept the very same texts without it.
#include "backends/emulator/runtime.h"
#include "gpu/modules.h"
#include "gpu/mutants_checks.h"

namespace gimbal::gpu {
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
  static std::span<const gpu::KernelCode> mutants() { return gpu::mutant_emulator_modules(); }
  static std::span<const gpu::KernelCode> kernels() { return gpu::emulator_modules(); }
  static gpu::Failure open(gpu::Options&, std::unique_ptr<gpu::Runtime>* out) {
    emulator::Options o;
    o.bounds = true;
    *out = emulator::open(o);
    return {};
  }
};

TEST(EmulatedMutants, AreAllFoundAndTheUnchangedTextsPass) { check_mutants<Emulator>(kMutants, 30, 15); }

}  // namespace
}  // namespace gimbal::test
