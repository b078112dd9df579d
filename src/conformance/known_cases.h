// Conformance cases and their reference results, computed once for all kernels of the same op and format: the
// reference is slower than many kernels.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ops/cases.h"
#include "ops/reference.h"

namespace gimbal {

// The positions and sequences that a case writes to its caches: see CaseInput.
struct Written {
  std::vector<int32_t> position, sequence;
  int32_t pages = 0;  // of a cache

  explicit Written(const Case&);
};

// The reference result and the magnitude of its terms. `state`: for ops with a state.
struct Expected {
  reference::Tensor out, state;
  std::vector<double> magnitude, state_magnitude;
};

struct KnownCase {
  Case input;
  std::optional<Expected> known;

  // `out`: the shape of the output, the same for every kernel.
  const Expected& expected(const Shape& out);
};

// Keeps the most recently used formats.
class KnownCases {
 public:
  std::vector<KnownCase>& of(OpKind, DType);  // valid until the next call

 private:
  struct Set {
    OpKind kind;
    DType format;
    std::vector<KnownCase> cases;
  };
  std::vector<Set> sets_;  // most recently used last
};

}  // namespace gimbal
