// On an OpenCL device, too, a kernel text with a wrong index does not pass (mutants/few.txt).
#define TESTED_BACKEND "opencl"
#include "backends/opencl/runtime.h"
#include "gpu/device_main.h"
#include "gpu/mutants_checks.h"

namespace gimbal::gpu {
std::span<const KernelCode> mutant_opencl_modules();
}

namespace gimbal::test {
namespace {

constexpr Mutant kMutants[] = {
#define MUTANT(name, kernel, row, change) {name, kernel, row, change},
#include "mutants.inc"
#undef MUTANT
};

struct Opencl {
  // The entry point has the name that the engine asks for.
  static std::span<const gpu::KernelCode> mutants() {
    static std::vector<std::string> texts;
    static std::vector<gpu::KernelCode> all;
    if (!all.empty()) return all;
    const auto built = gpu::mutant_opencl_modules();
    texts.reserve(built.size());
    for (gpu::KernelCode k : built)
      for (const Mutant& m : kMutants)
        if (k.name == m.name) {
          std::string& text = texts.emplace_back(k.code.begin(), k.code.end());
          const size_t at = text.find("void " + std::string(m.name) + "(");
          EXPECT_NE(at, text.npos) << m.name;
          if (at != text.npos) text.replace(at + 5, k.name.size(), m.kernel);
          k.code = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
          all.push_back(k);
        }
    return all;
  }
  static std::span<const gpu::KernelCode> kernels() { return {}; }
  static gpu::Failure open(gpu::Options&, std::unique_ptr<gpu::Runtime>* out) {
    opencl::Api api;
    if (auto f = opencl::Api::load(opencl::kLibrary, &api)) return f;
    std::unique_ptr<opencl::Opencl> runtime;
    if (auto f = opencl::open(api, 0, {}, &runtime)) return f;
    *out = std::move(runtime);
    return {};
  }
};

TEST(OpenclMutants, AreAllFoundAndTheUnchangedTextsPass) { check_mutants<Opencl>(kMutants, 3, 3); }

}  // namespace
}  // namespace gimbal::test
