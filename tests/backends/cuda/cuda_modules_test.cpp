// The PTX that was built: every kernel of kernels.def has its entry, with the arguments that the runtime
// passes, nothing undefined, no operation that rounds other than the dialect says; and NVIDIA's own assembler
// takes it, where it is installed.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>

#include "backends/cuda/vendor.h"
#include "backends/driver_api/kernel_names.h"
#include "backends/fake_driver/modules.h"
#include "base/hash.h"
#include "gpu/modules.h"
#include "gpu/unpacked.h"
#include "support/golden.h"

namespace gimbal::gpu {
namespace {

std::string text_of(const KernelCode& k) {
  return {reinterpret_cast<const char*>(k.code.data()), k.code.size()};
}

// Also those for matrix units, and those of tensors.
std::vector<KernelCode> all_modules() {
  std::vector<KernelCode> all = test::unpacked(ptx_modules());
  for (auto more : {matrix_ptx_modules(), tensor_ptx_modules()})
    for (KernelCode& k : test::unpacked(more)) all.push_back(std::move(k));
  return all;
}

TEST(Ptx, HasEveryKernel) {
  EXPECT_EQ(test::names_of(ptx_modules()), test::names_in_kernels_def());
  EXPECT_EQ(test::names_of(matrix_ptx_modules()), test::names_in_kernels_def("gpu/matrix/kernels.def"));
  EXPECT_EQ(test::names_of(tensor_ptx_modules()), test::names_in_kernels_def("gpu/tensors/kernels.def"));
  std::printf("%zu kernels, %zu for matrix units, %zu of tensors\n", ptx_modules().size(),
              matrix_ptx_modules().size(), tensor_ptx_modules().size());
}

TEST(Ptx, ForMatrixUnitsUsesThem) {
  for (const KernelCode& k : test::unpacked(matrix_ptx_modules())) {
    const std::string text = text_of(k);
    EXPECT_NE(text.find("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32"), std::string::npos) << k.name;
    EXPECT_EQ(cuda::min_capability(text), 80) << k.name;
  }
}

TEST(Ptx, TakesTheArgumentsThatAreGiven) {
  for (const KernelCode& k : all_modules()) {
    const auto entries = test::ptx_kernels(text_of(k));
    ASSERT_EQ(entries.size(), 1u) << k.name;
    EXPECT_EQ(entries[0].name, k.name);
    EXPECT_EQ(entries[0].pointers, k.bindings + 1) << k.name << ": the buffers and the step data";
    EXPECT_EQ(entries[0].params_bytes, k.param_bytes) << k.name;
    EXPECT_EQ(entries[0].lanes, k.lanes) << k.name;
  }
}

TEST(Ptx, NeedsNothingElse) {
  for (const KernelCode& k : all_modules()) {
    const std::string text = text_of(k);
    EXPECT_EQ(text.back(), '\0') << k.name << ": the driver wants a C string";
    for (const char* word : {".extern", ".weak", "call.uni", "call ", "vprintf", "malloc"})
      EXPECT_EQ(text.find(word), std::string::npos) << k.name << ": " << word;
    EXPECT_NE(text.find(".version 7.0\n"), std::string::npos)
        << k.name << ": what drivers from CUDA 11.0 on know";
    EXPECT_GE(cuda::min_capability(text), 50) << k.name;
  }
}

// Sums and products have a rounding mode of their own, or the assembler may fuse them; nothing is flushed or
// approximate.
TEST(Ptx, RoundsAsTheDialectSays) {
  int operations = 0;
  for (const KernelCode& k : all_modules()) {
    const std::string text = text_of(k);
    for (const char* word : {".ftz", ".approx", ".sat.f32", "div.full", "mad.f32", "\tadd.f32", "\tmul.f32",
                             "\tsub.f32", ".f64"})
      EXPECT_EQ(text.find(word), std::string::npos) << k.name << ": " << word;
    static const std::regex rounded(R"(\b(add|mul|sub|fma|div|sqrt)\.rn\.f32)");
    operations +=
        int(std::distance(std::sregex_iterator(text.begin(), text.end(), rounded), std::sregex_iterator()));
  }
  std::printf("%d operations\n", operations);
  EXPECT_GT(operations, 500) << "this test does not see them";
}

// For matrix units of sm_80 these need more registers than there are. The bytes that each stores; none spills
// on sm_90. No sm_80 was at hand to time them.
constexpr std::pair<std::string_view, int> kSpillsOnSm80[] = {
    {"mat_matrix_nvfp4", 36}, {"mat_matrix_q5_k", 72}, {"mat_matrix_q6_k", 12}};

int known_spill(std::string_view kernel, std::string_view architecture) {
  for (const auto& [name, bytes] : kSpillsOnSm80)
    if (name == kernel && architecture == "sm_80") return bytes;
  return 0;
}

TEST(Ptx, IsTakenByTheAssembler) {
  std::string assembler;
  for (const char* path : {"/usr/local/cuda/bin/ptxas", GIMBAL_SOURCE_DIR "/build/ptxas-rig/ptxas",
                           "/usr/bin/ptxas", "/usr/lib/cuda/bin/ptxas"})
    if (assembler.empty() && std::ifstream(path)) assembler = path;
  if (assembler.empty()) GTEST_SKIP() << "NVIDIA's ptxas is not here: scripts/setup.sh gpu";
  int taken = 0;
  for (const KernelCode& k : all_modules()) {
    const std::string file = test::temporary_path("kernel.ptx");
    std::ofstream(file) << text_of(k).c_str();
    // A6000: 8.6, RTX 4090: 8.9, RTX 5090: 12.0.
    for (const char* architecture : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
      // All of them for one architecture, some for the others: it takes a while. Names choose, so a new
      // kernel changes nothing for the others. All of those for matrix units, which need most registers, and
      // of the formats of the dual-backend roadmap (docs/compatibility.md).
      const std::string_view name = k.name;
      const bool chosen = Hash().add(k.name).value() % 8 == 0 || name.starts_with("mat_matrix") ||
                          name.ends_with("_i2_s") || name.ends_with("_i2_s64") || name.ends_with("_iq2_s");
      if (std::string(architecture) != "sm_90" && !chosen) continue;
      if (std::string(architecture) == "sm_75" && cuda::min_capability(text_of(k)) > 75) continue;
      const std::string command = assembler + " -arch=" + architecture +
                                  " --warn-on-spills --warning-as-error " + file + " -o /dev/null 2>&1";
      FILE* p = popen(command.c_str(), "r");
      ASSERT_NE(p, nullptr);
      std::string said;
      char line[512];
      while (fgets(line, sizeof line, p)) said += line;
      const int status = pclose(p);
      const int spill = known_spill(k.name, architecture);
      EXPECT_EQ(WIFEXITED(status) && WEXITSTATUS(status) == 0, spill == 0)
          << k.name << " for " << architecture << ": " << said;
      if (spill) {
        EXPECT_NE(said.find(std::to_string(spill) + " bytes spill stores"), std::string::npos) << said;
      }
    }
    taken++;
  }
  std::printf("%d kernels\n", taken);
  EXPECT_EQ(size_t(taken), all_modules().size());
}

// In builds with GIMBAL_CUDA_CUBINS, as it is set by default: for 8.0, 9.0 and 10.0.
TEST(MachineCode, IsForTheDevicesThatCanRunIt) {
  if (cuda::machine_code_for(9, 0).empty())
    GTEST_SKIP() << "this build makes PTX only (GIMBAL_CUDA_CUBINS is OFF)";
  for (auto [major, minor] : {std::pair(8, 0), {8, 6}, {8, 9}, {9, 0}, {10, 0}, {10, 3}}) {
    const auto table = cuda::machine_code_for(major, minor);
    EXPECT_EQ(test::names_of(table), test::names_in_kernels_def()) << major << "." << minor;
    size_t bytes = 0;
    for (const KernelCode& k : test::unpacked(table)) {
      EXPECT_EQ(test::cubin_kernels(k.code), std::vector<std::string>{std::string(k.name)})
          << major << "." << minor;
      bytes += k.code.size();
    }
    std::printf("%d.%d: %zu bytes\n", major, minor, bytes);
  }
  EXPECT_EQ(cuda::machine_code_for(8, 9).data(), cuda::machine_code_for(8, 0).data());
  EXPECT_NE(cuda::machine_code_for(9, 0).data(), cuda::machine_code_for(8, 0).data());
  for (auto [major, minor] : {std::pair(7, 5), {11, 0}, {12, 0}, {0, 0}})
    EXPECT_TRUE(cuda::machine_code_for(major, minor).empty());
}

}  // namespace
}  // namespace gimbal::gpu
