// What this CPU can do. On x86 CPUID says what the silicon has, XCR0 what the operating system saves, and
// both must agree; on ARM the kernel says both in the auxiliary vector.
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
};
extern const char* const kFeatureNames[];  // of bit i; ends with nullptr

uint32_t cpu_features();  // of this CPU, read once

// What an x86 CPU and its operating system say: registers after CPUID leaf 1, leaf 7 and its
// part 1, and XGETBV 0.
struct X86Reading {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0, leaf7_1_eax = 0;
  uint64_t xcr0 = 0;
};
// `request_tiles` asks the system for leave to use tile registers, and says whether it was given; it is
// called where nothing else is missing for AMX only. A refusal is a missing feature.
uint32_t x86_features(const X86Reading&, bool (*request_tiles)());

std::string cpu_name();  // "Intel(R) Xeon(R) Processor"; "CPU" where the machine says nothing

// Threads to compute with when the user does not say: physical cores that this process may run on, at most
// its cgroup's CPU quota.
int default_threads();
// Memory in bytes: of the machine, and what can be had now (cgroup limits included).
struct Memory {
  uint64_t total, available;
};
Memory memory();

}  // namespace gimbal::cpu
