// The interface of the model checker (ESBMC) for the proofs: arbitrary numbers, assumptions and claims. Also
// two built-in functions of compilers that it lacks, after the GCC manual ("Integer Overflow Builtins").
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" unsigned long nondet_ulong();
extern "C" long nondet_long();
extern "C" int nondet_int();
extern "C" bool nondet_bool();
extern "C" char nondet_char();

inline bool overflows_mul(uint64_t a, uint64_t b, uint64_t* to) {
  const unsigned __int128 product = (unsigned __int128)a * (unsigned __int128)b;
  *to = (uint64_t)(product & 0xffffffffffffffffull);
  return (product >> 64) != 0;
}
inline bool overflows_add(uint64_t a, uint64_t b, uint64_t* to) {
  const unsigned __int128 sum = (unsigned __int128)a + (unsigned __int128)b;
  *to = (uint64_t)(sum & 0xffffffffffffffffull);
  return (sum >> 64) != 0;
}
#define __builtin_mul_overflow(a, b, to) overflows_mul(a, b, to)
#define __builtin_add_overflow(a, b, to) overflows_add(a, b, to)

#define ASSUME(what) __ESBMC_assume(what)
#define CLAIM(what) __ESBMC_assert(what, #what)
