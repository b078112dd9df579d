// The cases that kernels are checked with, and what the reference says of them: made once for all kernels
// that compute the same op and format, which takes longer than many a kernel.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ops/cases.h"
#include "ops/reference.h"

namespace gimbal {

// Which positions of which sequences a case writes to its caches: see CaseInput.
struct Written {
  std::vector<int32_t> position, sequence;
  int32_t pages = 0;  // of a cache

  explicit Written(const Case&);
};

// What the reference says, and the magnitude of its terms. `state`: of ops that have one.
struct Expected {
  reference::Tensor out, state;
  std::vector<double> magnitude, state_magnitude;
};

struct KnownCase {
  Case input;
  std::optional<Expected> known;

  // `out`: the shape of its output, the same for every kernel.
  const Expected& expected(const Shape& out);
};

// Remembers the formats that it was asked for last.
class KnownCases {
 public:
  std::vector<KnownCase>& of(OpKind, DType);  // until the next call

 private:
  struct Set {
    OpKind kind;
    DType format;
    std::vector<KnownCase> cases;
  };
  std::vector<Set> sets_;  // the last one was used last
};

}  // namespace gimbal
