// Baseline flags only: this file runs before anything is known about the CPU.
#include "backends/cpu/cpu_features.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <thread>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/file.h"
#include "base/host_memory.h"

namespace gimbal::cpu {

const char* const kFeatureNames[] = {"FMA",      "F16C",     "AVX2", "AVX-512",  "VNNI",
                                     "NEON",     "dotprod",  "i8mm", "AMX-INT8", "AVX-512 BF16",
                                     "AMX-BF16", "AVX-VNNI", nullptr};

uint32_t x86_features(const X86Reading& r, bool (*request_tiles)()) {
  // Bits of Intel's "Software Developer's Manual", volume 2, CPUID, and volume 1, 13.3 (XCR0).
  constexpr uint32_t fma = 1u << 12, osxsave = 1u << 27, f16c = 1u << 29;  // leaf 1, ECX
  constexpr uint32_t avx2 = 1u << 5;                                       // leaf 7, EBX
  constexpr uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;   // F, DQ, BW, VL
  constexpr uint32_t vnni = 1u << 11;                                      // leaf 7, ECX
  constexpr uint32_t amx = 1u << 24 | 1u << 25;                            // leaf 7, EDX: tiles, int8
  constexpr uint32_t amx_bf16 = 1u << 22;                                  // leaf 7, EDX
  constexpr uint32_t avx_vnni = 1u << 4, bf16 = 1u << 5;                   // leaf 7, part 1, EAX
  constexpr uint64_t ymm = 0x6, zmm = 0xe6, tiles = 0x60000;               // XCR0
  uint32_t f = 0;
  if (!(r.leaf1_ecx & osxsave) || (r.xcr0 & ymm) != ymm) return f;  // the system does not save the registers
  if (r.leaf1_ecx & fma) f |= FMA;
  if (r.leaf1_ecx & f16c) f |= F16C;
  if (r.leaf7_ebx & avx2) f |= AVX2;
  if (r.leaf7_1_eax & avx_vnni) f |= AVX_VNNI;
  if ((r.leaf7_ebx & avx512) != avx512 || (r.xcr0 & zmm) != zmm) return f;
  f |= AVX512;
  if (!(r.leaf7_ecx & vnni)) return f;
  f |= VNNI;
  if (r.leaf7_1_eax & bf16) f |= AVX512_BF16;  // no CPU has it without VNNI
  if ((r.leaf7_edx & amx) == amx && (r.xcr0 & tiles) == tiles && request_tiles()) {
    f |= AMX_INT8;
    if (r.leaf7_edx & amx_bf16) f |= AMX_BF16;  // no CPU has it without bytes
  }
  return f;
}

namespace {

#if defined(__x86_64__)
X86Reading read_x86() {
  X86Reading r;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return r;
  r.leaf1_ecx = c;
  if (c & bit_OSXSAVE) {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    r.xcr0 = uint64_t(high) << 32 | low;
  }
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return r;
  r.leaf7_ebx = b, r.leaf7_ecx = c, r.leaf7_edx = d;
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) r.leaf7_1_eax = a;
  return r;
}

// Linux keeps tile registers disabled until a process requests them, once for all its threads.
bool request_tiles_from_linux() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif

uint32_t detect() {
  uint32_t f = 0;
#if defined(__x86_64__)
  f = x86_features(read_x86(), request_tiles_from_linux);
#elif defined(__aarch64__)
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  if (first & HWCAP_ASIMD) f |= NEON;
  if (first & HWCAP_ASIMDDP) f |= DOTPROD;
  if (second & HWCAP2_I8MM) f |= I8MM;
#endif
  return f;
}

}  // namespace

uint32_t cpu_features() {
  static const uint32_t features = detect();
  return features;
}

namespace {

// Value of "key : value" or "key: value kB" lines in /proc files.
std::string proc_field(const char* path, const std::string& key) {
  for (const std::string& line : lines_of(path))
    if (line.rfind(key, 0) == 0) {
      auto at = line.find(':');
      if (at == std::string::npos) return "";
      at = line.find_first_not_of(" \t", at + 1);
      return at == std::string::npos ? "" : line.substr(at);
    }
  return "";
}

// This process's cgroup folder (version 2); "" if it has none.
std::string cgroup() {
  std::string line = first_line("/proc/self/cgroup");
  return line.rfind("0::", 0) == 0 ? "/sys/fs/cgroup" + line.substr(3) : "";
}

}  // namespace

std::string cpu_name() {
  std::string name = proc_field("/proc/cpuinfo", "model name");
  if (!name.empty()) return name;
  // ARM: the board's name from the device tree (its text ends with a zero); without one, the maker's number
  // of the core, such as 0x41 part 0xd0c.
  name = first_line("/proc/device-tree/model");
  if (!name.empty()) return name.c_str();
  const std::string part = proc_field("/proc/cpuinfo", "CPU part");
  if (part.empty()) return "CPU";
  return "ARM CPU, implementer " + proc_field("/proc/cpuinfo", "CPU implementer") + " part " + part;
}

int default_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return std::max(1u, std::thread::hardware_concurrency());
  // Two hardware threads of one core share its vector units: count each set of siblings once.
  std::set<std::string> cores;
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &mask)) continue;
    std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(i) : siblings);
  }
  return within_quota(std::max<int>(1, int(cores.size())), first_line(cgroup() + "/cpu.max"));
}

int within_quota(int threads, const std::string& quota) {
  char* end = nullptr;
  const double allowed = strtod(quota.c_str(), &end), period = strtod(end, nullptr);
  if (!(allowed > 0 && period > 0 && allowed / period < threads)) return threads;
  return std::max(1, int(std::ceil(allowed / period)));
}

Memory memory() {
  const HostMemory m = host_memory();
  return {m.total, m.available};
}

}  // namespace gimbal::cpu
