// A promise of the code under a fuzzer: libFuzzer reports the abort with its input.
#pragma once
#include <cstdlib>

inline void require(bool promise) {
  if (!promise) std::abort();
}
