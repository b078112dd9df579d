// Runs one group of a kernel: its lanes in a loop, or on fibers if the kernel has barriers.
#pragma once
#include <cstdint>
#include <vector>

#include "backends/emulator/checks.h"
#include "backends/emulator/fiber.h"

namespace gimbal::emulator {

// Small and portable: xorshift64*.
class Shuffle {
 public:
  explicit Shuffle(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u | 1) {}
  template <class T>
  void operator()(std::vector<T>& v) {
    for (size_t i = v.size(); i > 1; i--) std::swap(v[i - 1], v[next() % i]);
  }

 private:
  uint64_t next() {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return (state_ * 0x2545f4914f6cdd1du) >> 16;
  }
  uint64_t state_;
};

class GroupRunner {
 public:
  // `checks`: null for the fast form. `shuffle`: null for numeric order.
  GroupRunner(Checks* checks, Shuffle* shuffle) : checks_(checks), shuffle_(shuffle) {}
  // `common`: the data shared by all lanes, including the sub-group size, a power of two. Returns "" once all
  // lanes have returned, else the defect in the kernel's barriers or trees.
  std::string run(const Compiled&, Lane common, uint32_t lanes);

 private:
  static void body(void* self, uint32_t lane);
  static void arrive(Lane&, int line);
  static uint32_t exchange(Lane&, uint32_t value, uint32_t distance, int line);
  std::string run_on_fibers(uint32_t subgroup);
  // Runs from one barrier to the next, or to the end.
  std::string run_subgroup(uint32_t first, uint32_t lanes);

  Checks* const checks_;
  Shuffle* const shuffle_;
  Fibers fibers_;
  LaneFunction function_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<int> line_;           // of the barrier or tree at which each lane waits
  std::vector<uint32_t> distance_;  // of the exchange at which it waits; 0: a barrier
  std::vector<uint32_t> given_, taken_;
  uint32_t returned_ = 0, gone_ = 0, waits_ = 0;  // counts, and the last lane that returned or waits
  std::vector<uint32_t> order_, own_order_;       // of sub-groups, and of lanes within one
  std::vector<uint64_t> shared_;
  static thread_local GroupRunner* running_;
};

}  // namespace gimbal::emulator
