// What is concluded from the registers of CPUID and XCR0: each kind of machine that has been met, and AMX,
// for which the system's leave is needed too.
#include "backends/cpu/cpu_features.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <set>
#include <thread>
#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/kernel_features.h"
#endif

namespace gimbal::cpu {
namespace {

int times_asked = 0;
bool granted() { return times_asked++, true; }
bool refused() { return times_asked++, false; }

// Registers as a Sapphire Rapids gives them on Linux, without unused ones.
X86Reading sapphire_rapids() {
  X86Reading r;
  r.leaf1_ecx = 0x7ffefbff, r.leaf7_ebx = 0xf3bfbfef, r.leaf7_ecx = 0xfb417ffe, r.leaf7_edx = 0xffdd4432;
  r.xcr0 = 0x602e7;
  return r;
}
constexpr uint32_t kVectors = FMA | F16C | AVX2 | AVX512 | VNNI;

struct CpuFeatures : testing::Test {
  void SetUp() override { times_asked = 0; }
};

TEST_F(CpuFeatures, AllOfThem) {
  EXPECT_EQ(x86_features(sapphire_rapids(), granted), kVectors | AMX_INT8 | AMX_BF16);
  EXPECT_EQ(times_asked, 1);
}

TEST_F(CpuFeatures, DotProductsOfBf16) {
  X86Reading r = sapphire_rapids();
  r.leaf7_1_eax = 0x1c30;  // AVX-VNNI and AVX512_BF16 among others
  EXPECT_EQ(x86_features(r, refused), kVectors | AVX_VNNI | AVX512_BF16);
  r.leaf7_1_eax &= ~(1u << 5);
  EXPECT_EQ(x86_features(r, refused), kVectors | AVX_VNNI);
  r.leaf7_1_eax = 1u << 5, r.leaf7_ecx &= ~(1u << 11);
  EXPECT_EQ(x86_features(r, refused), kVectors & ~VNNI) << "the rows need VNNI, too";
}

// Alder Lake has AVX-VNNI, and no AVX-512. Cascade Lake has it the other way round.
TEST_F(CpuFeatures, DotProductsOfBytesWithoutAvx512) {
  X86Reading r = sapphire_rapids();
  r.leaf7_1_eax = 1u << 4, r.leaf7_ebx &= ~(1u << 16 | 1u << 17 | 1u << 30 | 1u << 31), r.xcr0 = 7;
  EXPECT_EQ(x86_features(r, granted), uint32_t(FMA | F16C | AVX2 | AVX_VNNI));
  r.leaf7_1_eax = 0;
  EXPECT_EQ(x86_features(r, granted), uint32_t(FMA | F16C | AVX2));
  r.leaf7_1_eax = 1u << 4, r.xcr0 = 3;  // the system saves no registers of 32 bytes
  EXPECT_EQ(x86_features(r, granted), 0u);
}

TEST_F(CpuFeatures, ARefusalIsAMissingFeature) {
  EXPECT_EQ(x86_features(sapphire_rapids(), refused), kVectors);
  EXPECT_EQ(times_asked, 1);
}

TEST_F(CpuFeatures, TilesThatTheSystemDoesNotSave) {
  for (uint64_t saved : {0xe7, 0x200e7, 0x400e7}) {
    X86Reading r = sapphire_rapids();
    r.xcr0 = saved;
    EXPECT_EQ(x86_features(r, granted), kVectors) << saved;
  }
  EXPECT_EQ(times_asked, 0) << "leave was asked for where it is of no use";
}

TEST_F(CpuFeatures, TilesWithoutBf16) {
  X86Reading r = sapphire_rapids();
  r.leaf7_edx &= ~(1u << 22);
  EXPECT_EQ(x86_features(r, granted), kVectors | AMX_INT8);
}

TEST_F(CpuFeatures, TilesThatCannotMultiplyBytes) {
  for (int missing : {24, 25}) {
    X86Reading r = sapphire_rapids();
    r.leaf7_edx &= ~(1u << missing);
    EXPECT_EQ(x86_features(r, granted), kVectors) << missing;
  }
  EXPECT_EQ(times_asked, 0);
}

TEST_F(CpuFeatures, TheAmxRowsNeedVnniToo) {
  X86Reading r = sapphire_rapids();
  r.leaf7_ecx &= ~(1u << 11);
  EXPECT_EQ(x86_features(r, granted), kVectors & ~VNNI);
  EXPECT_EQ(times_asked, 0);
}

TEST_F(CpuFeatures, EveryPartOfAvx512IsNeeded) {
  for (int missing : {16, 17, 30, 31}) {
    X86Reading r = sapphire_rapids();
    r.leaf7_ebx &= ~(1u << missing);
    EXPECT_EQ(x86_features(r, granted), uint32_t(FMA | F16C | AVX2)) << missing;
  }
  X86Reading r = sapphire_rapids();
  r.xcr0 = 7;  // the system saves no registers of 64 bytes
  EXPECT_EQ(x86_features(r, granted), uint32_t(FMA | F16C | AVX2));
  EXPECT_EQ(times_asked, 0);
}

TEST_F(CpuFeatures, NothingWithoutTheSystem) {
  X86Reading r = sapphire_rapids();
  r.leaf1_ecx &= ~(1u << 27);  // no OSXSAVE: the saved registers are unknown
  EXPECT_EQ(x86_features(r, granted), 0u);
  r = sapphire_rapids(), r.xcr0 = 3;
  EXPECT_EQ(x86_features(r, granted), 0u);
  EXPECT_EQ(x86_features({}, granted), 0u);
}

TEST_F(CpuFeatures, OneByOne) {
  X86Reading r;
  r.leaf1_ecx = 1u << 27, r.xcr0 = 7;
  EXPECT_EQ(x86_features(r, granted), 0u);
  r.leaf1_ecx |= 1u << 12;
  EXPECT_EQ(x86_features(r, granted), uint32_t(FMA));
  r.leaf1_ecx |= 1u << 29;
  EXPECT_EQ(x86_features(r, granted), uint32_t(FMA | F16C));
  r.leaf7_ebx |= 1u << 5;
  EXPECT_EQ(x86_features(r, granted), uint32_t(FMA | F16C | AVX2));
}

#if defined(__x86_64__)
TEST_F(CpuFeatures, OfThisCpuAreThoseOfTheKernel) {
  uint32_t expected = test::features_by_the_kernel();
  ASSERT_NE(expected, 0u) << "the flags of /proc/cpuinfo are missing, or this CPU is older than 2012";
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  if (expected & AMX_INT8 && syscall(SYS_arch_prctl, request_permission, tile_data) != 0)
    expected &= ~(AMX_INT8 | AMX_BF16);
  EXPECT_EQ(cpu_features(), expected);
}
#endif

TEST_F(CpuFeatures, EveryBitHasAName) {
  int names = 0;
  while (kFeatureNames[names]) names++;
  EXPECT_EQ(1u << (names - 1), uint32_t(AVX_VNNI));
  EXPECT_STREQ(kFeatureNames[names - 1], "AVX-VNNI");
  EXPECT_EQ(cpu_features() >> names, 0u);
  EXPECT_EQ(cpu_features(), cpu_features());
}

// The default number of threads, where the process may use these CPUs alone.
int threads_on(const std::vector<int>& cpus) {
  int threads = 0;
  std::thread([&] {  // only this thread is bound to them
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int i : cpus) CPU_SET(i, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    threads = default_threads();
  })
      .join();
  return threads;
}

TEST(DefaultThreads, OneForEachPhysicalCore) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  std::vector<int> all;
  std::set<std::pair<std::string, std::string>> cores;  // package and core, which name no siblings
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &mask)) continue;
    all.push_back(i);
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/";
    std::string package = std::to_string(i), core;
    std::ifstream(topology + "physical_package_id") >> package;
    std::ifstream(topology + "core_id") >> core;
    cores.insert({package, core});
    EXPECT_EQ(threads_on({i}), 1) << "cpu " << i;
  }
  EXPECT_EQ(threads_on(all), default_threads());
  const int most = int(cores.size());
  EXPECT_LE(default_threads(), most) << "a cgroup may allow fewer";
  std::string own, quota;
  std::getline(std::ifstream("/proc/self/cgroup") >> std::ws, own);
  if (own.starts_with("0::")) std::ifstream("/sys/fs/cgroup" + own.substr(3) + "/cpu.max") >> quota;
  if (quota.empty() || quota == "max") { EXPECT_EQ(default_threads(), most); }
}

TEST(DefaultThreads, NoMoreThanACgroupAllows) {
  for (const char* none : {"", "max 100000", "nonsense", "100000", "100000 0", "-1 100000"})
    EXPECT_EQ(within_quota(8, none), 8) << none;
  EXPECT_EQ(within_quota(8, "200000 100000"), 2);
  EXPECT_EQ(within_quota(8, "150000 100000"), 2) << "one and a half";
  EXPECT_EQ(within_quota(8, "1000 100000"), 1);
  EXPECT_EQ(within_quota(8, "800000 100000"), 8);
  EXPECT_EQ(within_quota(2, "9000000000000 1000"), 2);
}

}  // namespace
}  // namespace gimbal::cpu
