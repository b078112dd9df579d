#include "backends/cpu/compiled_program.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/tensors/grain.h"
#include "ops/op_def.h"

namespace gimbal::cpu {
namespace {

constexpr double kMinOperations = 1e5;  // of a level: below, one worker computes it alone
constexpr int64_t kChunks = 8;          // of a range, if all were as large as the first
constexpr uint64_t kGroupBytes =
    16 << 10;  // data that a group's ops may touch before its first row is evicted

}  // namespace

CompiledProgram::CompiledProgram(const gimbal_program& p, const CpuKernel* table, int threads)
    : values_(p.values, p.values + p.n_values), program_(p.ops, p.ops + p.n_ops), threads_(threads) {
  std::vector<uint32_t> row_inputs;
  for (const gimbal_op& op : program_)
    row_inputs.push_back(table[op.kernel].by_row ? def(OpKind(op.kind)).row_inputs() : 0);
  schedule_ = make_schedule(p, row_inputs);
  for (uint32_t index : schedule_.order) {
    const gimbal_op& op = program_[index];
    Op o{{}, &table[op.kernel], &value_of_rows(op, values_.data()), {}, 0};
    o.task.op = &op, o.task.out = &values_[op.out[0]];
    for (int i = 0; i < op.inputs; i++) o.task.in[i] = &values_[op.in[i]];
    ops_.push_back(o);
  }
  for (size_t level = 0; level < schedule_.levels.size(); level++)
    for (uint32_t g = schedule_.levels[level].begin; g < schedule_.levels[level].end; g++) {
      const Group& group = schedule_.groups[g];
      uint64_t row_bytes = 1;
      for (uint32_t i = group.begin; i < group.end; i++)
        row_bytes += 2 * ops_[i].rows->bytes / uint64_t(capacity(*ops_[i].rows));
      const bool one_op = group.end - group.begin == 1;
      const int64_t rows_at_once =
          one_op ? INT64_MAX : int64_t(std::max<uint64_t>(1, kGroupBytes / row_bytes));
      const bool inputs_kept = ops_[group.begin].kernel->item_outputs && one_op &&
                               !overwritten_later(p, schedule_.order[group.begin]);
      groups_.push_back({level, rows_at_once, inputs_kept, 1, false});
      if (group.parts) place_parts(group);
    }
  levels_ = std::make_unique<LevelState[]>(schedule_.levels.size());
  ranges_ = std::make_unique<Range[]>(schedule_.groups.size() * size_t(threads_));
  in_flight_ = std::make_unique<InFlight[]>(size_t(threads_));
  for (const gimbal_value& v : values_)
    if (v.slot != GIMBAL_LOCAL) memory_.resize(std::max<size_t>(memory_.size(), v.slot + 1));
  plan_scratch();
  if (part_bytes_) parts_.reset(new_buffer(part_bytes_ * size_t(threads_)));
}

// A place in the worker's memory for each value of the group that has none elsewhere, from the op that writes
// it to the last that reads it. An op's output has another place than its inputs.
void CompiledProgram::place_parts(Group group) {
  struct Room {
    uint64_t value;
    uint32_t last_use;
    size_t begin, bytes;
  };
  std::vector<Room> rooms;
  const auto last_use = [&](uint64_t value) {
    uint32_t last = group.begin;
    for (uint32_t i = group.begin; i < group.end; i++)
      for (int k = 0; k < ops_[i].task.op->inputs; k++)
        if (ops_[i].task.in[k]->slot == GIMBAL_LOCAL && ops_[i].task.in[k]->offset == value) last = i;
    return last;
  };
  for (uint32_t i = group.begin; i < group.end; i++) {
    Op& o = ops_[i];
    const auto add = [&](int operand, const gimbal_value& v) {
      if (v.slot != GIMBAL_LOCAL) return;
      const size_t element = info(DType(v.dtype)).bytes, bytes = size_t(kGrain) * element;
      auto room = std::find_if(rooms.begin(), rooms.end(), [&](const Room& r) {
        return operand < 0 ? r.last_use < i && r.bytes >= bytes : r.value == v.offset && r.last_use >= i;
      });
      if (room == rooms.end()) {
        room = rooms.insert(
            rooms.end(), {v.offset, 0, rooms.empty() ? 0 : rooms.back().begin + rooms.back().bytes, bytes});
        part_bytes_ = std::max(part_bytes_, room->begin + bytes);
      }
      if (operand < 0) room->value = v.offset, room->last_use = last_use(v.offset);
      o.parts.push_back({operand, element, room->begin});
    };
    for (int k = 0; k < o.task.op->inputs; k++) add(k, *o.task.in[k]);
    add(-1, *o.task.out);
  }
}

// Ops of a level have scratch memory of their own; levels share it.
void CompiledProgram::plan_scratch() {
  for (const Level& level : schedule_.levels) {
    size_t bytes = 0;
    for (uint32_t g = level.begin; g < level.end; g++)
      for (uint32_t i = schedule_.groups[g].begin; i < schedule_.groups[g].end; i++) {
        if (!ops_[i].kernel->scratch) continue;
        ops_[i].scratch = bytes;
        bytes += (size_t(ops_[i].kernel->scratch(ops_[i].task)) + 63) / 64 * 64;
      }
    scratch_bytes_ = std::max(scratch_bytes_, bytes);
  }
}

void CompiledProgram::run(gimbal_buffer* const* slots, size_t n, gimbal_step step, ThreadPool& pool) {
  bind(slots, n);
  std::unique_ptr<gimbal_buffer, decltype(&delete_buffer)> scratch(nullptr, delete_buffer);
  if (scratch_bytes_) {
    scratch.reset(new_buffer(scratch_bytes_));
    for (Op& o : ops_) o.task.scratch = scratch->data + o.scratch;
  }
  const size_t first = plan_step(step);
  compute_alone(0, first, 0);
  if (first == schedule_.levels.size()) return;
  level_.set(uint32_t(first));
  pool.run([this, &pool](int worker) { work(pool, worker); });
}

void CompiledProgram::run_counts(uint64_t* counts, size_t n_ops) const {
  for (size_t i = 0; i < ops_.size(); i++)
    if (schedule_.order[i] < n_ops) counts[schedule_.order[i]] = ops_[i].runs;
}

// Binds every op to its memory. Usually nothing changes, because programs keep their buffers.
void CompiledProgram::bind(gimbal_buffer* const* slots, size_t n) {
  bool moved = false;
  for (size_t s = 0; s < memory_.size(); s++) {
    unsigned char* const now = s < n && slots[s] ? slots[s]->data : nullptr;
    moved |= memory_[s] != now;
    memory_[s] = now;
  }
  if (!moved) return;
  auto at = [&](const gimbal_value& v) {
    return v.slot != GIMBAL_LOCAL && memory_[v.slot] ? memory_[v.slot] + v.offset : nullptr;
  };
  for (Op& o : ops_) {
    o.task.y = at(*o.task.out);
    for (int i = 0; i < o.task.op->inputs; i++) o.task.x[i] = at(*o.task.in[i]);
  }
}

// Computes the amount of work, and which levels are worth several workers; returns the first of them.
size_t CompiledProgram::plan_step(gimbal_step step) {
  for (Op& o : ops_) {
    o.task.rows = int32_t(rows_in_step(*o.rows, step));
    o.work = o.kernel->work(o.task);
  }
  for (size_t l = 0; l < schedule_.levels.size(); l++) {
    const Level& level = schedule_.levels[l];
    LevelState& state = levels_[l];
    state.parallel = false;
    if (threads_ == 1 || level.single) continue;
    double operations = 0;
    int64_t items = 0;
    for (uint32_t g = level.begin; g < level.end; g++) {
      const Group& group = schedule_.groups[g];
      for (uint32_t i = group.begin; i < group.end; i++) operations += ops_[i].work.operations;
      items += ops_[group.begin].work.items;
      plan_ranges(g);
    }
    state.parallel = operations >= kMinOperations && items > 0;
    state.items_left.store(items, std::memory_order_relaxed);
  }
  return next_parallel(0);
}

void CompiledProgram::plan_ranges(uint32_t group) {
  const Op& first = ops_[schedule_.groups[group].begin];
  const int64_t items = first.work.items;
  GroupState& state = groups_[group];
  state.items_at_once = first.task.rows > 1 ? first.kernel->items_at_once : 1;
  state.in_flight = state.inputs_kept && first.task.rows == 1 && items <= InFlight::kMaxRound;
  const bool two_streams = state.in_flight && first.kernel->launch_two;
  for (int64_t w = 0; w < threads_; w++) {
    Range& range = ranges_[group * size_t(threads_) + size_t(w)];
    range.next.store(0, std::memory_order_relaxed);
    range.begin = w * items / threads_;
    range.end = (w + 1) * items / threads_;
    range.rounds = two_streams ? (range.end - range.begin + 1) / 2 : range.end - range.begin;
  }
}

size_t CompiledProgram::next_parallel(size_t level) const {
  while (level < schedule_.levels.size() && !levels_[level].parallel) level++;
  return level;
}

// The loop of every worker, from the first parallel level to the last.
void CompiledProgram::work(ThreadPool& pool, int worker) {
  for (uint32_t level; (level = level_.value()) != schedule_.levels.size();) {
    compute_level(level, worker);
    if (pool.spins()) {
      if (level_.spin_while(level)) continue;
      recompute_in_flight(level, worker);
    }
    level_.sleep_while(level);
  }
}

// First a worker's own ranges, then the unclaimed chunks of the others.
void CompiledProgram::compute_level(size_t level, int worker) {
  for (int i = 0; i < threads_; i++)
    for (uint32_t g = schedule_.levels[level].begin; g < schedule_.levels[level].end; g++)
      compute_range(g * size_t(threads_) + size_t((worker + i) % threads_), worker);
}

// Chunks are claimed one after the other, so an interrupted worker does not delay the others. They get
// smaller towards the end, so the wait for the last one is short.
void CompiledProgram::compute_range(size_t index, int worker) {
  InFlight& own = in_flight_[size_t(worker)];
  Range& range = ranges_[index];
  const GroupState& group = groups_[group_of(index)];
  for (int64_t at = range.next.load(std::memory_order_relaxed); at < range.rounds;) {
    const int64_t size = (range.rounds - at) / kChunks,
                  whole = (size + group.items_at_once - 1) / group.items_at_once * group.items_at_once,
                  max_rounds = group.in_flight ? InFlight::kMaxRounds : INT64_MAX,
                  rounds = std::min({std::max(group.items_at_once, whole), max_rounds, range.rounds - at});
    if (!range.next.compare_exchange_weak(at, at + rounds, std::memory_order_relaxed)) continue;
    if (group.in_flight) {
      const Chunk chunk{index, at, rounds};
      own.begin(chunk);
      compute_in_flight(own, chunk, worker);
    } else {
      compute_items(uint32_t(group_of(index)), range.begin + at, range.begin + at + rounds, worker);
      finish_items(group.level, rounds, worker);
    }
    at = range.next.load(std::memory_order_relaxed);
  }
}

// Computes in scratch memory and copies the result to its place, unless another worker was first.
void CompiledProgram::compute_in_flight(InFlight& owner, const Chunk& chunk, int worker) {
  struct Stream {
    int64_t begin, items;
    alignas(64) float values[16 * InFlight::kMaxRounds];
  };
  const Range& range = ranges_[chunk.range];
  const size_t group = group_of(chunk.range);
  Op& op = ops_[schedule_.groups[group].begin];
  const int64_t outputs = op.kernel->item_outputs, middle = range.begin + range.rounds;
  Stream first, second;
  first.begin = range.begin + chunk.round, first.items = chunk.rounds;
  second.begin = middle + chunk.round;
  second.items = std::clamp<int64_t>(range.end - second.begin, 0, chunk.rounds);
  auto into =
      [&](Stream& s) {  // item i writes from output i * outputs on, so y begins that much before `values`
        CpuTask task = op.task;
        task.y = reinterpret_cast<unsigned char*>(reinterpret_cast<uintptr_t>(s.values) -
                                                  uintptr_t(s.begin * outputs) * sizeof(float));
        return task;
      };
  const CpuTask task = into(first);
  if (second.items) op.kernel->launch_two(task, first.begin, into(second), second.begin, second.items);
  if (first.items > second.items)
    op.kernel->launch(task, first.begin + second.items, first.begin + first.items);
  if (!owner.claim(chunk)) return;
  for (const Stream* s : {&first, &second}) {
    const int64_t at = s->begin * outputs, n = std::min(s->items * outputs, op.task.out->dim[0] - at);
    if (s->items) std::memcpy(op.task.y + at * int64_t(sizeof(float)), s->values, size_t(n) * sizeof(float));
  }
  if (first.begin == 0) op.runs++;
  finish_items(groups_[group].level, first.items + second.items, worker);
}

// A worker that the system preempts in the middle of a chunk keeps it for milliseconds, dozens of levels.
void CompiledProgram::recompute_in_flight(size_t level, int worker) {
  for (int i = 1; i < threads_; i++) {
    InFlight& other = in_flight_[size_t((worker + i) % threads_)];
    const auto chunk = other.chunk();
    if (chunk && groups_[group_of(chunk->range)].level == level) compute_in_flight(other, *chunk, worker);
  }
}

// The worker that stores the last value of a level computes the following small levels, while the others wait
// anyway, and opens the next parallel one.
void CompiledProgram::finish_items(size_t level, int64_t items, int worker) {
  if (levels_[level].items_left.fetch_sub(items, std::memory_order_acq_rel) != items) return;
  const size_t next = next_parallel(level + 1);
  compute_alone(level + 1, next, worker);
  level_.set(uint32_t(next));
}

void CompiledProgram::compute_alone(size_t begin, size_t end, int worker) {
  for (size_t l = begin; l < end; l++)
    for (uint32_t g = schedule_.levels[l].begin; g < schedule_.levels[l].end; g++)
      compute_items(g, 0, ops_[schedule_.groups[g].begin].work.items, worker);
}

void CompiledProgram::compute_items(uint32_t g, int64_t begin, int64_t end, int worker) {
  const Group group = schedule_.groups[g];
  if (group.parts) return compute_parts(group, begin, end, worker);
  for (int64_t at = begin; at < end;) {
    const int64_t next = end - at > groups_[g].rows_at_once ? at + groups_[g].rows_at_once : end;
    for (uint32_t i = group.begin; i < group.end; i++) {
      ops_[i].kernel->launch(ops_[i].task, at, next);
      if (at == 0) ops_[i].runs++;  // by one worker only: others may compute the rest
    }
    at = next;
  }
}

// Part after part: the values between the ops stay in the worker's cache.
void CompiledProgram::compute_parts(Group group, int64_t begin, int64_t end, int worker) {
  unsigned char* const own = parts_->data + part_bytes_ * size_t(worker);
  for (int64_t at = begin; at < end; at++)
    for (uint32_t i = group.begin; i < group.end; i++) {
      CpuTask task = ops_[i].task;
      for (const Part& part : ops_[i].parts) {  // part `at` begins at `place`, so the value begins before it
        const uintptr_t value = uintptr_t(own + part.place) - uintptr_t(at * kGrain) * part.element;
        auto* const memory = reinterpret_cast<unsigned char*>(value);
        if (part.operand < 0) task.y = memory;
        else task.x[part.operand] = memory;
      }
      ops_[i].kernel->launch(task, at, at + 1);
      if (at == 0) ops_[i].runs++;
    }
}

}  // namespace gimbal::cpu
