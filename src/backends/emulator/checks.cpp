#include "backends/emulator/checks.h"

#include "base/format.h"

namespace gimbal::emulator {
namespace {
constexpr uint32_t kSeveral = UINT32_MAX;  // more than one lane has read it
thread_local Checks* running = nullptr;

std::string place(const uint32_t at[3]) { return format("({}, {}, {})", at[0], at[1], at[2]); }
}  // namespace

void Checks::run_on_this_thread(Checks* c) { running = c; }

void Checks::all_before_ended() {
  period_++;
  next_ = 1;
  launched_.clear();
}

void Checks::begin_launch(std::string_view kernel, Touch* const* touches, uint32_t lanes,
                          const uint32_t groups[3]) {
  if (!launched_.empty()) {
    const Launched& last = launched_.back();
    next_ = last.first + last.lanes * last.groups[0] * last.groups[1] * last.groups[2];
  }
  kernel_ = kernel, touches_ = touches, lanes_ = lanes;
  for (int i = 0; i < 3; i++) groups_[i] = groups[i];
  launched_.push_back({kernel, next_, lanes, {groups[0], groups[1], groups[2]}});
}

void Checks::begin_group(const uint32_t group[3], uint32_t shared_words) {
  for (int i = 0; i < 3; i++) group_[i] = group[i];
  first_of_group_ = next_ + lanes_ * (group[0] + groups_[0] * (group[1] + groups_[1] * group[2]));
  group_count_++, phase_++;
  if (shared_.size() < shared_words) shared_.resize(shared_words);
}

std::string Checks::where() const {
  return format("kernel {}, group {}, lane {}", kernel_, place(group_), lane_);
}

std::string Checks::name_of(uint32_t who, bool shared) const {
  if (who == kSeveral) return "several lanes";
  if (shared) return format("lane {}", who - 1);
  for (size_t i = launched_.size(); i-- > 0;) {
    const Launched& l = launched_[i];
    if (who < l.first) continue;
    uint32_t lane = (who - l.first) % l.lanes, group = (who - l.first) / l.lanes;
    uint32_t at[3] = {group % l.groups[0], group / l.groups[0] % l.groups[1],
                      group / l.groups[0] / l.groups[1]};
    std::string text = format("lane {} of group {}", lane, place(at));
    if (i + 1 < launched_.size())
      text += format(" of kernel {}, launched before without after_all between them,", l.kernel);
    return text;
  }
  return "a lane";
}

void Checks::note(std::string defect) {
  if (defect_.empty()) defect_ = format("{}: {}", where(), defect);
}

void Checks::race(const Touch& t, uint32_t other, bool write, const Array& a, uint64_t index) {
  if (!defect_.empty()) return;
  const bool shared = a.kind == Array::SharedMemory;
  note(format("race: {} {}[{}], which {} {} with {}", write ? "writes" : "reads", a.name, index,
              name_of(other, shared), other == t.writer ? "writes" : "reads",
              shared ? "no BARRIER between them"
                     : "nothing that orders the two (a barrier orders shared memory only)"));
}

// Inlined below: kernels spend most of their time here.
inline void Checks::touch(Touch& t, uint32_t period, uint32_t who, bool write, const Array& a,
                          uint64_t index) {
  if (t.period != period) t.period = period, t.reader = t.writer = 0;
  if (t.writer && t.writer != who) race(t, t.writer, write, a, index);
  else if (write && t.reader && t.reader != who) race(t, t.reader, write, a, index);
  if (write) t.writer = who;
  else t.reader = t.reader && t.reader != who ? kSeveral : who;
}

inline uint32_t* Checks::word(const Array& a, uint64_t index, bool write) {
  if (index >= a.words) {
    note(format("{} {}[{}], but it has {} words", write ? "writes" : "reads", a.name, index, a.words));
    nowhere_ = 0;
    return &nowhere_;
  }
  if (a.kind == Array::SharedMemory) {
    Touch& t = shared_[a.binding + index];
    if (write) t.filled = group_count_;
    else if (t.filled != group_count_)
      note(format("reads {}[{}] of the shared memory, which no lane of this group has written", a.name,
                  index));
    if (races_) touch(t, phase_, lane_ + 1, write, a, index);
  } else if (races_) {
    touch(touches_[a.binding][index], period_, first_of_group_ + lane_, write, a, index);
  }
  return static_cast<uint32_t*>(a.data) + index;
}

uint32_t* checked_word(const Array& array, uint64_t index, bool write) {
  return running->word(array, index, write);
}

}  // namespace gimbal::emulator
