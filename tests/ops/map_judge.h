// Compares many results of a map with the C library's in a wider type. Compiled with optimization, unlike the
// tests.
#pragma once
#include <cstddef>

#include "ops/maps.h"

namespace gimbal::test {

template <class T>
struct MapWorst {
  double error = 0;  // in units in the last place
  T x = 0, y = 0, got = 0;
  long wrong_nans = 0;  // other than the one quiet NaN
};
void judge(const MapFacts&, const float* a, const float* b, const float* got, size_t n, const double* numbers,
           MapWorst<float>&);
void judge(const MapFacts&, const double* a, const double* b, const double* got, size_t n,
           const double* numbers, MapWorst<double>&);

}  // namespace gimbal::test
