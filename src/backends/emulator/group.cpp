#include "backends/emulator/group.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace gimbal::emulator {

thread_local GroupRunner* GroupRunner::running_ = nullptr;

void GroupRunner::body(void* self, uint32_t lane) {
  auto& mine = *static_cast<GroupRunner*>(self);
  mine.function_(mine.lanes_[lane]);
}

void GroupRunner::arrive(Lane& lane, int line) {
  GroupRunner& mine = *running_;
  mine.line_[lane.lane] = line;
  mine.distance_[lane.lane] = 0;
  mine.fibers_.pause();
}

uint32_t GroupRunner::exchange(Lane& lane, uint32_t value, uint32_t distance, int line) {
  GroupRunner& mine = *running_;
  mine.line_[lane.lane] = line;
  mine.distance_[lane.lane] = distance;
  mine.given_[lane.lane] = value;
  mine.fibers_.pause();
  return mine.taken_[lane.lane];
}

std::string GroupRunner::run(const Compiled& kernel, Lane common, uint32_t lanes) {
  running_ = this;
  function_ = checks_ ? kernel.checked : kernel.fast;
  const uint32_t subgroup = kernel.barriers ? std::clamp(common.subgroup, 1u, lanes) : 1;
  const uint32_t parts = (lanes + subgroup - 1) / subgroup;
  if (order_.size() != parts) {
    order_.resize(parts);
    for (uint32_t i = 0; i < parts; i++) order_[i] = i;
  }
  shared_.resize((kernel.shared_bytes + 7) / 8);
  // NaN in every float format, and an invalid index: kernels must not read memory that they have not written.
  if (kernel.barriers || checks_) memset(shared_.data(), 0xff, shared_.size() * 8);
  common.shared = shared_.data();
  common.arrive = arrive;
  common.exchange = exchange;
  common.subgroup = subgroup;
  common.checks = checks_;
  if (checks_) checks_->begin_group(common.group, (kernel.shared_bytes + 3) / 4);
  if (shuffle_) (*shuffle_)(order_);
  if (kernel.barriers) {
    lanes_.assign(lanes, common);
    for (uint32_t i = 0; i < lanes; i++) lanes_[i].lane = i;
    return run_on_fibers(subgroup);
  }
  for (uint32_t i : order_) {
    common.lane = i;
    if (checks_) checks_->set_lane(i);
    function_(common);
  }
  return "";
}

std::string GroupRunner::run_on_fibers(uint32_t subgroup) {
  uint32_t lanes = uint32_t(lanes_.size());
  line_.assign(lanes, 0), distance_.assign(lanes, 0);
  given_.resize(lanes), taken_.resize(lanes);
  if (!fibers_.start(lanes, body, this))
    return format("there is no memory for the stacks of {} lanes", lanes);
  for (;;) {
    returned_ = 0;
    for (uint32_t s : order_) {
      std::string wrong = run_subgroup(s * subgroup, std::min(subgroup, lanes - s * subgroup));
      if (!wrong.empty()) return wrong;
    }
    if (returned_ == lanes) return "";
    if (returned_)
      return format(
          "lane {} waits at the BARRIER of line {}, but lane {} has returned: all lanes must pass it, or "
          "none",
          waits_, line_[waits_], gone_);
    for (uint32_t i = 1; i < lanes; i++)
      if (line_[i] != line_[0])
        return format(
            "lane 0 waits at the BARRIER of line {} and lane {} at that of line {}: all lanes must pass the "
            "same",
            line_[0], i, line_[i]);
    if (checks_) checks_->barrier_passed();
    if (shuffle_) (*shuffle_)(order_);
  }
}

// Other sub-groups are not waited for, and shared memory is not ordered: only a barrier does that.
std::string GroupRunner::run_subgroup(uint32_t first, uint32_t lanes) {
  own_order_.resize(lanes);
  for (uint32_t i = 0; i < lanes; i++) own_order_[i] = first + i;
  for (;;) {
    if (shuffle_) (*shuffle_)(own_order_);
    uint32_t exchanging = 0, at = first, elsewhere = first;
    for (uint32_t i : own_order_) {
      if (checks_) checks_->set_lane(i);
      const bool done = fibers_.resume(i);
      if (done) returned_++, gone_ = i;
      else waits_ = i;
      if (!done && distance_[i]) exchanging++, at = i;
      else elsewhere = i;
    }
    if (!exchanging) return "";
    if (exchanging < lanes)
      return format(
          "lane {} waits at the TREE of line {}, but lane {} of its sub-group does not: all lanes must pass "
          "it, or none",
          at, line_[at], elsewhere);
    for (uint32_t i = first; i < first + lanes; i++) {
      if (line_[i] != line_[at] || distance_[i] != distance_[at])
        return format(
            "lane {} waits at the TREE of line {} and lane {} at that of line {}: all lanes must pass the "
            "same",
            at, line_[at], i, line_[i]);
      taken_[i] = given_[first + ((i - first) ^ distance_[i])];
    }
  }
}

}  // namespace gimbal::emulator
