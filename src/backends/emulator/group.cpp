#include "backends/emulator/group.h"

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
  mine.fibers_.pause();
}

std::string GroupRunner::run(const Compiled& kernel, Lane common, uint32_t lanes) {
  running_ = this;
  function_ = checks_ ? kernel.checked : kernel.fast;
  if (order_.size() != lanes) {
    order_.resize(lanes);
    for (uint32_t i = 0; i < lanes; i++) order_[i] = i;
  }
  shared_.resize((kernel.shared_bytes + 7) / 8);
  // Not a number in any float, and no sensible index: kernels must not read what they have not written.
  if (kernel.barriers || checks_) memset(shared_.data(), 0xff, shared_.size() * 8);
  common.shared = shared_.data();
  common.arrive = arrive;
  common.checks = checks_;
  if (checks_) checks_->begin_group(common.group, (kernel.shared_bytes + 3) / 4);
  if (shuffle_) (*shuffle_)(order_);
  if (kernel.barriers) {
    lanes_.assign(lanes, common);
    for (uint32_t i = 0; i < lanes; i++) lanes_[i].lane = i;
    return run_on_fibers(kernel);
  }
  for (uint32_t i : order_) {
    common.lane = i;
    if (checks_) checks_->set_lane(i);
    function_(common);
  }
  return "";
}

std::string GroupRunner::run_on_fibers(const Compiled&) {
  uint32_t lanes = uint32_t(lanes_.size());
  line_.assign(lanes, 0);
  if (!fibers_.start(lanes, body, this))
    return format("there is no memory for the stacks of {} lanes", lanes);
  for (;;) {
    uint32_t returned = 0, gone = 0, waits = 0;
    for (uint32_t i : order_) {
      if (checks_) checks_->set_lane(i);
      if (fibers_.resume(i)) returned++, gone = i;
      else waits = i;
    }
    if (returned == lanes) return "";
    if (returned)
      return format(
          "lane {} waits at the BARRIER of line {}, but lane {} has returned: all lanes must pass it, or "
          "none",
          waits, line_[waits], gone);
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

}  // namespace gimbal::emulator
