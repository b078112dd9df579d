#include "backends/cpu/compiled.h"

#include <algorithm>
#include <cstring>

namespace gimbal::cpu {
namespace {

constexpr double kWorthWaking = 1e5;        // operations of a phase below which one thread does it alone
constexpr int64_t kShares = 8;              // of a thread's part, if all were as large as the first
constexpr uint64_t kChainBytes = 16 << 10;  // what the ops of a chain may touch before the first row is left
constexpr int kMostHeld = 64;               // rounds of a share that can be computed twice

// By the letter of C++ a race: a thread that was put aside may read inputs that are being overwritten by
// those who did its share and went on. What it makes of them is thrown away. ThreadSanitizer cannot know
// that.
#if defined(__SANITIZE_THREAD__)
constexpr bool kComputeTwice = false;
#else
constexpr bool kComputeTwice = true;
#endif

// A share in one word, never 0; and no two of a step are the same.
constexpr int64_t kMostUnits = 0xffffff;
uint64_t packed(size_t part, int64_t round, int64_t rounds) {
  return uint64_t(part) << 32 | uint64_t(round) << 8 | uint64_t(rounds);
}
size_t part_of(uint64_t share) { return size_t(share >> 32); }
int64_t round_of(uint64_t share) { return int64_t(share >> 8 & kMostUnits); }
int64_t rounds_of(uint64_t share) { return int64_t(share & 0xff); }

// Rows of a value that a step computes.
int32_t rows_in(const gimbal_value& v, gimbal_step step) {
  if (v.extent == GIMBAL_STEP_ROWS) return std::min(step.rows, capacity(v));
  if (v.extent == GIMBAL_OUT_ROWS) return std::min(step.out_rows, capacity(v));
  return capacity(v);
}

}  // namespace

Compiled::Compiled(const gimbal_program& p, const CpuKernel* table, int threads)
    : values_(p.values, p.values + p.n_values), program_(p.ops, p.ops + p.n_ops), threads_(threads) {
  std::vector<uint32_t> row_inputs;
  for (const gimbal_op& op : program_) row_inputs.push_back(table[op.kernel].row_inputs);
  schedule_ = make_schedule(p, row_inputs);
  for (uint32_t index : schedule_.order) {
    const gimbal_op& op = program_[index];
    Op o{{}, &table[op.kernel], &value_of_rows(op, values_.data()), {}, 0};
    o.task.op = &op, o.task.out = &values_[op.out];
    for (int i = 0; i < op.inputs; i++) o.task.in[i] = &values_[op.in[i]];
    ops_.push_back(o);
  }
  for (size_t phase = 0; phase < schedule_.phases.size(); phase++)
    for (uint32_t c = schedule_.phases[phase].begin; c < schedule_.phases[phase].end; c++) {
      const Chain& chain = schedule_.chains[c];
      uint64_t row_bytes = 1;
      for (uint32_t i = chain.begin; i < chain.end; i++)
        row_bytes += 2 * ops_[i].rows->bytes / uint64_t(capacity(*ops_[i].rows));
      const bool one_op = chain.end - chain.begin == 1;
      portions_.push_back(
          {phase, one_op ? INT64_MAX : int64_t(std::max<uint64_t>(1, kChainBytes / row_bytes)), 1, false});
    }
  turns_ = std::make_unique<Turn[]>(schedule_.phases.size());
  parts_ = std::make_unique<Part[]>(schedule_.chains.size() * size_t(threads_));
  held_ = std::make_unique<Held[]>(size_t(threads_));
  for (const gimbal_value& v : values_) memory_.resize(std::max<size_t>(memory_.size(), v.slot + 1));
}

void Compiled::run(gimbal_buffer* const* slots, size_t n, gimbal_step step, Team& team) {
  bind(slots, n);
  const size_t first = plan_step(step);
  compute_alone(0, first);
  if (first == schedule_.phases.size()) return;
  phase_.store(first, std::memory_order_relaxed);
  team.run([this, &team](int member) { walk(team, member); });
}

void Compiled::run_counts(uint64_t* counts, size_t n_ops) const {
  for (size_t i = 0; i < ops_.size(); i++)
    if (schedule_.order[i] < n_ops) counts[schedule_.order[i]] = ops_[i].runs;
}

// Tells every op where its memory is. It is where it was, as a rule: programs keep their buffers.
void Compiled::bind(gimbal_buffer* const* slots, size_t n) {
  bool moved = false;
  for (size_t s = 0; s < memory_.size(); s++) {
    unsigned char* const now = s < n && slots[s] ? slots[s]->data : nullptr;
    moved |= memory_[s] != now;
    memory_[s] = now;
  }
  if (!moved) return;
  auto at = [&](const gimbal_value& v) { return memory_[v.slot] ? memory_[v.slot] + v.offset : nullptr; };
  for (Op& o : ops_) {
    o.task.y = at(*o.task.out);
    for (int i = 0; i < o.task.op->inputs; i++) o.task.x[i] = at(*o.task.in[i]);
  }
}

// How much there is to do, and which phases are worth the attention of several threads; gives the first.
size_t Compiled::plan_step(gimbal_step step) {
  for (Op& o : ops_) {
    o.task.rows = rows_in(*o.rows, step);
    o.work = o.kernel->work(o.task);
  }
  for (size_t p = 0; p < schedule_.phases.size(); p++) {
    const Phase& phase = schedule_.phases[p];
    Turn& turn = turns_[p];
    turn.together = false;
    if (threads_ == 1 || phase.single) continue;
    double operations = 0;
    int64_t units = 0;
    for (uint32_t c = phase.begin; c < phase.end; c++) {
      const Chain& chain = schedule_.chains[c];
      for (uint32_t i = chain.begin; i < chain.end; i++) operations += ops_[i].work.operations;
      units += ops_[chain.begin].work.units;
      plan_parts(c);
    }
    turn.together = operations >= kWorthWaking && units > 0;
    turn.left.store(units, std::memory_order_relaxed);
  }
  return next_together(0);
}

void Compiled::plan_parts(uint32_t chain) {
  const Op& first = ops_[schedule_.chains[chain].begin];
  const int64_t units = first.work.units;
  Portion& portion = portions_[chain];
  portion.at_once = first.task.rows > 1 ? first.kernel->units_at_once : 1;
  portion.twice = kComputeTwice && first.kernel->unit_values && first.task.rows == 1 && units <= kMostUnits;
  const bool two_streams = portion.twice && first.kernel->launch_two;
  for (int64_t m = 0; m < threads_; m++) {
    Part& part = parts_[chain * size_t(threads_) + size_t(m)];
    part.next.store(0, std::memory_order_relaxed);
    part.begin = m * units / threads_;
    part.end = (m + 1) * units / threads_;
    part.rounds = two_streams ? (part.end - part.begin + 1) / 2 : part.end - part.begin;
  }
}

size_t Compiled::next_together(size_t phase) const {
  while (phase < schedule_.phases.size() && !turns_[phase].together) phase++;
  return phase;
}

// What every member of the team does, from the first phase that is worth it to the last.
void Compiled::walk(Team& team, int member) {
  for (;;) {
    const uint32_t opened = phase_opened_.value();
    // Perhaps a later one than was signalled: whoever opens a phase has yet to raise the signal.
    const size_t phase = phase_.load(std::memory_order_acquire);
    if (phase == schedule_.phases.size()) return;
    compute_together(phase, member);
    if (team.spins()) {
      if (phase_opened_.spin_while(opened)) continue;
      compute_what_others_hold(phase, member);
    }
    phase_opened_.sleep_while(opened);
  }
}

// First a member's own parts, then what the others have not come to.
void Compiled::compute_together(size_t phase, int member) {
  for (int i = 0; i < threads_; i++)
    for (uint32_t c = schedule_.phases[phase].begin; c < schedule_.phases[phase].end; c++)
      compute_part(c * size_t(threads_) + size_t((member + i) % threads_), held_[size_t(member)]);
}

// Shares are taken as they come, so that a thread that is interrupted does not hold up the others; they get
// smaller towards the end, so that nobody waits long for the last one.
void Compiled::compute_part(size_t index, Held& mine) {
  Part& part = parts_[index];
  const auto chain = uint32_t(index / size_t(threads_));
  const Portion& portion = portions_[chain];
  for (int64_t at = part.next.load(std::memory_order_relaxed); at < part.rounds;) {
    const int64_t share = (part.rounds - at) / kShares,
                  whole = (share + portion.at_once - 1) / portion.at_once * portion.at_once,
                  most = portion.twice ? kMostHeld : INT64_MAX,
                  rounds = std::min({std::max(portion.at_once, whole), most, part.rounds - at});
    if (!part.next.compare_exchange_weak(at, at + rounds, std::memory_order_relaxed)) continue;
    if (portion.twice) {
      const uint64_t held = packed(index, at, rounds);
      mine.share.store(held, std::memory_order_relaxed);
      compute_held(mine, held);
    } else {
      compute_units(chain, part.begin + at, part.begin + at + rounds);
      finish_units(portion.phase, rounds);
    }
    at = part.next.load(std::memory_order_relaxed);
  }
}

// A thread that the system has put aside in the middle of a share keeps it for milliseconds, many phases
// long.
void Compiled::compute_what_others_hold(size_t phase, int member) {
  for (int i = 1; i < threads_; i++) {
    Held& other = held_[size_t((member + i) % threads_)];
    const uint64_t share = other.share.load(std::memory_order_relaxed);
    if (share && portions_[part_of(share) / size_t(threads_)].phase == phase) compute_held(other, share);
  }
}

// Into memory of this thread's own, and from there into its place, if nobody else was sooner.
void Compiled::compute_held(Held& held, uint64_t share) {
  struct Stream {
    int64_t begin, units;
    alignas(64) float values[16 * kMostHeld];
  };
  const Part& part = parts_[part_of(share)];
  const size_t chain = part_of(share) / size_t(threads_);
  Op& op = ops_[schedule_.chains[chain].begin];
  const int64_t round = round_of(share), rounds = rounds_of(share), middle = part.begin + part.rounds;
  Stream first, other;
  first.begin = part.begin + round, first.units = rounds;
  other.begin = middle + round, other.units = std::clamp<int64_t>(part.end - other.begin, 0, rounds);
  auto into = [&](Stream& s) {
    CpuTask task = op.task;
    task.y = reinterpret_cast<unsigned char*>(reinterpret_cast<uintptr_t>(s.values) -
                                              uintptr_t(s.begin * op.kernel->unit_values) * sizeof(float));
    return task;
  };
  const CpuTask task = into(first);
  if (other.units) op.kernel->launch_two(task, first.begin, into(other), other.begin, other.units);
  if (first.units > other.units)
    op.kernel->launch(task, first.begin + other.units, first.begin + first.units);
  if (!held.share.compare_exchange_strong(share, 0, std::memory_order_relaxed)) return;
  for (const Stream* s : {&first, &other}) {
    const int64_t at = s->begin * op.kernel->unit_values,
                  n = std::min(s->units * op.kernel->unit_values, op.task.out->dim[0] - at);
    if (s->units) std::memcpy(op.task.y + at * int64_t(sizeof(float)), s->values, size_t(n) * sizeof(float));
  }
  if (first.begin == 0) op.runs++;
  finish_units(portions_[chain].phase, first.units + other.units);
}

// Who puts the last value of a phase into its place does the small phases behind it, while the others wait
// anyhow, and opens the next one for all.
void Compiled::finish_units(size_t phase, int64_t units) {
  if (turns_[phase].left.fetch_sub(units, std::memory_order_acq_rel) != units) return;
  const size_t next = next_together(phase + 1);
  compute_alone(phase + 1, next);
  phase_.store(next, std::memory_order_release);
  phase_opened_.raise();
}

void Compiled::compute_alone(size_t begin, size_t end) {
  for (size_t p = begin; p < end; p++)
    for (uint32_t c = schedule_.phases[p].begin; c < schedule_.phases[p].end; c++)
      compute_units(c, 0, ops_[schedule_.chains[c].begin].work.units);
}

void Compiled::compute_units(uint32_t c, int64_t begin, int64_t end) {
  const Chain chain = schedule_.chains[c];
  for (int64_t at = begin; at < end;) {
    const int64_t next = end - at > portions_[c].rows_at_once ? at + portions_[c].rows_at_once : end;
    for (uint32_t i = chain.begin; i < chain.end; i++) {
      ops_[i].kernel->launch(ops_[i].task, at, next);
      if (at == 0) ops_[i].runs++;  // one thread only: others may be at work on the rest
    }
    at = next;
  }
}

}  // namespace gimbal::cpu
