// The kernels that a CPU of another kind would choose: CPUID of this one, with bits hidden. Linux can let
// CPUID fault (arch_prctl ARCH_SET_CPUID, on Intel's CPUs since 2012); the handler executes it and hides the
// bits. A child process for each CPU, because features are read once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/kernel_features.h"
#include "discovery/named_kernels.h"
#include "support/engine.h"
#include "support/golden.h"
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>
#endif

namespace gimbal::test {
namespace {

using namespace cpu;

struct Machine {
  const char* name;
  uint32_t features;    // of those in cpu_features.h
  const char* variant;  // of its products: one row, 8 rows, 64 rows; then of rms_norm
};
constexpr uint32_t kHaswell = FMA | F16C | AVX2, kSkylake = kHaswell | AVX512, kCascade = kSkylake | VNNI;
constexpr Machine kMachines[] = {
    {"Sandy Bridge", 0, "baseline baseline baseline baseline"},
    {"Ivy Bridge", F16C, "baseline baseline baseline baseline"},
    {"Haswell", kHaswell, "avx2 avx2 avx2 avx2"},
    {"Alder Lake", kHaswell | AVX_VNNI, "avxvnni avxvnni avxvnni avx2"},
    {"Skylake-X", kSkylake, "avx512 avx2 avx512 avx512"},
    {"Cascade Lake", kCascade, "avx512vnni avx512vnni avx512vnni avx512"},
    {"Sapphire Rapids without tiles", kCascade | AVX_VNNI, "avx512vnni avx512vnni avx512vnni avx512"},
};

std::string variant_of(const std::string& kernel) { return kernel.substr(4, kernel.find('.', 4) - 4); }

// The roadmap's kernels that a CPU with these features can compute, of those for x86.
std::string capable(uint32_t features) {
  std::string names = "I2S_QK256_Scalar ";
  if (features & AVX2) names += "I2S_QK256_AVX2 ";
  if (features & AVX512) names += "I2S_QK256_AVX512 ";
  if (features & AVX2) names += "TL1_X86_AVX2 ";
  if (features & AVX512) names += "TL1_X86_AVX512 TL2_X86_AVX512 ";
  return names + "IQ2S_GGML_CPU Llama_CPU ";
}

// Those that this process finds, and "WRONG" for each of the others without a reason.
std::string capable_here(const Device& device) {
  BackendReport cpu;
  cpu.backend = "cpu", cpu.present = cpu.available = true;
  cpu.devices.push_back(report_of(device, 0));
  std::string names;
  for (const KernelCapability& k : kernel_capabilities({&cpu, 1})) {
    if (!k.devices.empty()) names += std::string(to_string(k.kernel)) + " ";
    else if (k.why_not.empty()) names += "WRONG ";
  }
  return names;
}

// The report of a child, a line each: CPU features, variants of the build, choices, the roadmap's kernels,
// bytes of the logits.
std::string find(const Machine& machine) {
  std::string out = std::to_string(cpu_features()) + "\n";
  if (cpu_features() != machine.features) return out + "\n\n\n";
  EngineOptions o;
  o.run.context = o.run.batch = o.run.logit_rows = 64;
  auto e = open_engine(golden_dir() + "/quant/q-q4_0.gguf", o);
  if (!e) return out + "\n" + e.error().message + "\n";
  const ModelPlan& plan = e->model->plan();
  std::set<std::string> variants;
  for (size_t i = 0; i < plan.device().kernel_count(); i++)
    variants.insert(variant_of(plan.device().kernel(i).name));
  for (const std::string& v : variants) out += " " + v;
  out += "\n";
  const auto chosen = [&](int rows, const char* op) {
    const Bucket& b = plan.stages[0].buckets[plan.bucket_for(rows)];
    for (const auto& c : b.choices)
      if (const std::string name = plan.device().kernel(c.kernel).name; name.find(op) != std::string::npos)
        return variant_of(name);
    return std::string("none");
  };
  out += chosen(1, ".mat_mul") + " " + chosen(8, ".mat_mul") + " " + chosen(64, ".mat_mul") + " " +
         chosen(1, ".rms_norm") + "\n" + capable_here(plan.device()) + "\n";
  std::vector<int32_t> tokens;
  for (int i = 0; i < 50; i++) tokens.push_back(i * 37 % 512);
  const std::vector<float> logits = e->all_logits(tokens);
  return out + std::string(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
}

#if defined(__x86_64__)
Machine pretended;

long set_cpuid(bool works) {
  constexpr long set = 0x1012;  // ARCH_SET_CPUID of asm/prctl.h
  return syscall(SYS_arch_prctl, set, works ? 1 : 0);
}

// Bits of cpu_features.cpp, hidden if the machine lacks their feature.
void hide(unsigned leaf, unsigned part, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
  const auto clear = [](unsigned& word, uint32_t feature, unsigned bits) {
    if (!(pretended.features & feature)) word &= ~bits;
  };
  if (leaf == 1) clear(c, FMA, 1u << 12), clear(c, F16C, 1u << 29);
  if (leaf == 7 && part == 0) {
    clear(b, AVX2, 1u << 5), clear(b, AVX512, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31);
    clear(c, VNNI, 1u << 11), clear(d, AMX_INT8, 1u << 24 | 1u << 25), clear(d, AMX_BF16, 1u << 22);
  }
  if (leaf == 7 && part == 1) clear(a, AVX_VNNI, 1u << 4), clear(a, AVX512_BF16, 1u << 5);
}
void on_fault(int, siginfo_t*, void* context) {
  auto& r = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const unsigned char*>(r[REG_RIP]);
  if (code[0] != 0x0f || code[1] != 0xa2) _exit(3);  // no CPUID
  const auto leaf = unsigned(r[REG_RAX]), part = unsigned(r[REG_RCX]);
  unsigned a, b, c, d;
  set_cpuid(true);
  __cpuid_count(leaf, part, a, b, c, d);
  set_cpuid(false);
  hide(leaf, part, a, b, c, d);
  r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d, r[REG_RIP] += 2;
}
// False, with errno, if this system cannot hide CPUID.
bool pretend(const Machine& m) {
  pretended = m;
  struct sigaction action = {};
  action.sa_sigaction = on_fault, action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return sigaction(SIGSEGV, &action, nullptr) == 0 && set_cpuid(false) == 0;
}
#else
bool pretend(const Machine&) { return errno = ENODEV, false; }
#endif

// None: this system cannot hide CPUID.
std::optional<std::string> found_by_child(const Machine& m) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!pretend(m)) _exit(2);
    const std::string found = find(m);
    for (size_t at = 0; at < found.size();) {
      const ssize_t n = write(ends[1], found.data() + at, found.size() - at);
      if (n <= 0) _exit(1);
      at += size_t(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string found;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) found.append(part, size_t(n));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return std::nullopt;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << m.name << ": status " << status;
  return found;
}

TEST(MaskedCpu, ChoosesTheKernelsOfItsKind) {
  const uint32_t here = features_by_the_kernel();  // not by cpu_features(), which is under test
  int ran = 0;
  std::string logits;
  for (const Machine& m : kMachines) {
    SCOPED_TRACE(m.name);
    if (m.features & ~here) {
      std::printf("not run: this CPU lacks features of %s\n", m.name);
      continue;
    }
    const auto found = found_by_child(m);
    if (!found) GTEST_SKIP() << "this system cannot hide CPUID (arch_prctl ARCH_SET_CPUID)";
    const size_t first = found->find('\n'), second = found->find('\n', first + 1),
                 third = found->find('\n', second + 1), fourth = found->find('\n', third + 1);
    ASSERT_NE(fourth, std::string::npos) << *found;
    ASSERT_EQ(found->substr(0, first), std::to_string(m.features)) << "features that were detected";
    const std::string built = found->substr(first + 1, second - first - 1) + " ";
    if (m.features & AVX_VNNI && built.find(" avxvnni ") == std::string::npos) {
      std::printf("not run: this build has no avxvnni, for %s\n", m.name);
      continue;
    }
    EXPECT_EQ(found->substr(second + 1, third - second - 1), m.variant);
    EXPECT_EQ(found->substr(third + 1, fourth - third - 1), capable(m.features));
    const std::string bits = found->substr(fourth + 1);
    EXPECT_EQ(bits.size(), 50u * 512 * sizeof(float));
    if (logits.empty()) logits = bits;
    EXPECT_TRUE(bits == logits) << "other bits than " << kMachines[0].name;
    ran++;
  }
  std::printf("%d of %zu CPUs\n", ran, std::size(kMachines));
  EXPECT_GE(ran, 1);
}

}  // namespace
}  // namespace gimbal::test
