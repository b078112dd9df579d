#include "ops/map_judge.h"

#include <bit>

#include "ops/map_reference.h"

namespace gimbal::test {
namespace {

// The judge's own quotients are not exact where they have more digits than its type.
bool is_judged(MapFunction function, double x, double y) {
  if (function == MapFunction::FloorDiv && y != 0 && std::isfinite(x) && std::isfinite(y))
    return std::abs(x / y) < 0x1p20;
  return has_map_reference(function, x);
}

template <class T, class Wide, class Bits>
void judge_all(const MapFacts& facts, const T* a, const T* b, const T* got, size_t n, const double* numbers,
               Bits quiet, MapWorst<T>& worst) {
  for (size_t i = 0; i < n; i++) {
    if (!is_judged(facts.function, double(a[i]), double(b[i]))) continue;
    const Wide want = map_reference<Wide>(facts.function, a[i], b[i], numbers);
    if (std::isnan(got[i]) && std::bit_cast<Bits>(got[i]) != quiet) worst.wrong_nans++;
    if (worst.error >= 0.5 && got[i] == T(want)) continue;  // as near as can be
    const double error = map_error(got[i], want, Wide(allowed_absolute<T>(facts.function)));
    if (error > worst.error) worst = {error, a[i], b[i], got[i], worst.wrong_nans};
  }
}

}  // namespace

void judge(const MapFacts& f, const float* a, const float* b, const float* got, size_t n,
           const double* numbers, MapWorst<float>& worst) {
  judge_all<float, double>(f, a, b, got, n, numbers, uint32_t(0x7fc00000), worst);
}
void judge(const MapFacts& f, const double* a, const double* b, const double* got, size_t n,
           const double* numbers, MapWorst<double>& worst) {
  judge_all<double, long double>(f, a, b, got, n, numbers, uint64_t(0x7ff8000000000000), worst);
}

}  // namespace gimbal::test
