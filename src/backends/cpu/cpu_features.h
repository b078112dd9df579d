// CPU feature detection. On x86, CPUID reports the hardware's features and XCR0 the registers that the
// operating system saves; both are required. On ARM the kernel reports both in the auxiliary vector.
#pragma once
#include <cstdint>
#include <string>

namespace gimbal::cpu {

enum Feature : uint32_t {
  FMA = 1,
  F16C = 2,
  AVX2 = 4,
  AVX512 = 8,
  VNNI = 16,
  NEON = 32,
  DOTPROD = 64,
  I8MM = 128,
  AMX_INT8 = 256,
  AVX512_BF16 = 512,
  AMX_BF16 = 1024,
  AVX_VNNI = 2048,  // in VEX coding: also of CPUs without AVX-512
};
extern const char* const kFeatureNames[];  // of bit i; ends with nullptr

uint32_t cpu_features();  // of this CPU, read once

// Raw feature data of an x86 CPU and its operating system: registers after CPUID leaf 1, leaf 7 and its part
// 1, and XGETBV 0.
struct X86Reading {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0, leaf7_1_eax = 0;
  uint64_t xcr0 = 0;
};
// `request_tiles` asks the system for permission to use tile registers and returns whether it was granted;
// called only if AMX needs nothing else. A refusal counts as a missing feature.
uint32_t x86_features(const X86Reading&, bool (*request_tiles)());

std::string cpu_name();  // "Intel(R) Xeon(R) Processor"; "CPU" if unknown

// Default number of threads: the physical cores available to this
// process, at most its cgroup's CPU quota.
int default_threads();
// That many, or fewer by a cgroup's cpu.max: microseconds in each period, "150000 100000" or "max 100000".
int within_quota(int threads, const std::string& quota);
// Memory in bytes: the machine's total, and the amount available now (including cgroup limits).
struct Memory {
  uint64_t total, available;
};
Memory memory();

}  // namespace gimbal::cpu
