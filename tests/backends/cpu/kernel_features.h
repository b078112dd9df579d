// The features of this x86 CPU in the flags of /proc/cpuinfo. Linux omits features whose registers it does
// not save. The tests compare it with what CPUID said to cpu_features.cpp.
#pragma once
#include <cstdint>
#include <sstream>
#include <string>

#include "backends/cpu/cpu_features.h"
#include "base/file.h"

namespace gimbal::test {

// 0 if /proc/cpuinfo has no flags.
inline uint32_t features_by_the_kernel() {
  using namespace cpu;
  std::string flags;
  for (const std::string& line : gimbal::lines_of("/proc/cpuinfo"))
    if (line.rfind("flags", 0) == 0) flags = " " + line.substr(line.find(':') + 1) + " ";
  const auto has = [&](const char* names) {
    bool all = true;
    std::istringstream words(names);
    for (std::string word; words >> word;) all = all && flags.find(" " + word + " ") != std::string::npos;
    return all;
  };
  uint32_t f = 0;
  if (has("fma")) f |= FMA;
  if (has("f16c")) f |= F16C;
  if (has("avx2")) f |= AVX2;
  if (has("avx_vnni")) f |= AVX_VNNI;
  if (has("avx512f avx512dq avx512bw avx512vl")) f |= AVX512;
  if (has("avx512f avx512dq avx512bw avx512vl avx512_vnni")) f |= VNNI;
  if (f & VNNI && has("avx512_bf16")) f |= AVX512_BF16;
  if (f & VNNI && has("amx_tile amx_int8")) f |= AMX_INT8;
  if (f & AMX_INT8 && has("amx_bf16")) f |= AMX_BF16;
  return f;
}

}  // namespace gimbal::test
