// Baseline flags only: this file runs before anything is known about the CPU.
#include "backends/cpu/cpu_features.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace gimbal::cpu {

const char* const kFeatureNames[] = {"FMA",  "F16C",    "AVX2", "AVX-512", "VNNI",
                                     "NEON", "dotprod", "i8mm", nullptr};

uint32_t cpu_features() {
  uint32_t f = 0;
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 6) != 6) return 0;  // the OS does not save ymm registers
  if (c & bit_FMA) f |= FMA;
  if (c & bit_F16C) f |= F16C;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
  if (b & bit_AVX2) f |= AVX2;
  const unsigned skylake = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
  if ((b & skylake) == skylake && (low & 0xe6) == 0xe6) {
    f |= AVX512;
    if (c & bit_AVX512VNNI) f |= VNNI;
  }
#elif defined(__aarch64__)
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  if (first & HWCAP_ASIMD) f |= NEON;
  if (first & HWCAP_ASIMDDP) f |= DOTPROD;
  if (second & HWCAP2_I8MM) f |= I8MM;
#endif
  return f;
}

namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// Value of "key : value" or "key: value kB" lines in /proc files.
std::string proc_field(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key, 0) == 0) {
      auto at = line.find(':');
      if (at == std::string::npos) return "";
      at = line.find_first_not_of(" \t", at + 1);
      return at == std::string::npos ? "" : line.substr(at);
    }
  return "";
}

uint64_t number_or(const std::string& text, uint64_t otherwise) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return otherwise;
  return std::strtoull(text.c_str(), nullptr, 10);
}

// This process's cgroup folder (version 2); "" where there is none.
std::string cgroup() {
  std::string line = first_line("/proc/self/cgroup");
  return line.rfind("0::", 0) == 0 ? "/sys/fs/cgroup" + line.substr(3) : "";
}

}  // namespace

std::string cpu_name() {
  std::string name = proc_field("/proc/cpuinfo", "model name");
  if (!name.empty()) return name;
  // ARM: the board's name where there is a device tree (its text ends with a zero), else the maker's number
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
  int threads = std::max<int>(1, int(cores.size()));
  std::istringstream quota(first_line(cgroup() + "/cpu.max"));
  double allowed = 0, period = 0;
  if (quota >> allowed >> period && period > 0)
    threads = std::min(threads, std::max(1, int(std::ceil(allowed / period))));
  return threads;
}

Memory memory() {
  Memory m{number_or(proc_field("/proc/meminfo", "MemTotal"), 0) * 1024,
           number_or(proc_field("/proc/meminfo", "MemAvailable"), 0) * 1024};
  if (m.total == 0) {
    m.total = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
    m.available = m.total;
  }
  if (std::string group = cgroup(); !group.empty()) {
    uint64_t limit = number_or(first_line(group + "/memory.max"), UINT64_MAX);
    uint64_t used = number_or(first_line(group + "/memory.current"), 0);
    if (limit != UINT64_MAX) {
      m.total = std::min(m.total, limit);
      m.available = std::min(m.available, limit > used ? limit - used : 0);
    }
  }
  return m;
}

}  // namespace gimbal::cpu
