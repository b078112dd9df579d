// Memory checks of emulated kernels: each access must be within its array, and two unordered lanes must not
// access the same word if one of them writes. The first defect is kept, worded for the author of the kernel
// or launch.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/dialect/emulator_lane.h"

namespace gimbal::emulator {

// Accesses to a word that are not ordered since. Lanes are numbered from 1 over all groups and all unordered
// launches (buffers), or within their group (shared memory).
struct Touch {
  uint32_t period = 0;  // reader and writer are valid in this period only
  uint32_t reader = 0, writer = 0;
  uint32_t filled = 0;  // shared memory: the last group that wrote it
};

class Checks {
 public:
  explicit Checks(bool races) : races_(races) {}

  // All earlier accesses are ordered before all later ones.
  void all_before_ended();
  // `touches`: by binding, those of the binding's words. Unused without race checks.
  void begin_launch(std::string_view kernel, Touch* const* touches, uint32_t lanes, const uint32_t groups[3]);
  void begin_group(const uint32_t group[3], uint32_t shared_words);
  void set_lane(uint32_t lane) { lane_ = lane; }
  void barrier_passed() { phase_++; }

  uint32_t* word(const Array&, uint64_t index, bool write);
  void note(std::string defect);
  const std::string& defect() const { return defect_; }

  static void run_on_this_thread(Checks*);  // used by the kernels' word()

 private:
  void touch(Touch&, uint32_t period, uint32_t who, bool write, const Array&, uint64_t index);
  // Notes that the lane touches a word that `other` touched, too.
  void race(const Touch&, uint32_t other, bool write, const Array&, uint64_t index);
  std::string name_of(uint32_t who, bool shared) const;
  std::string where() const;

  const bool races_;
  std::string defect_;
  std::string_view kernel_;
  Touch* const* touches_ = nullptr;
  uint32_t lanes_ = 0, groups_[3] = {}, group_[3] = {}, lane_ = 0;
  uint32_t period_ = 1, phase_ = 1, group_count_ = 0;
  uint32_t first_of_group_ = 0;  // number of lane 0 of the running group
  struct Launched {
    std::string_view kernel;
    uint32_t first, lanes, groups[3];
  };
  std::vector<Launched> launched_;  // since all_before_ended()
  uint32_t next_ = 1;
  std::vector<Touch> shared_;
  uint32_t nowhere_ = 0;
};

}  // namespace gimbal::emulator
