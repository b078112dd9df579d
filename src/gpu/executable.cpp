#include "gpu/executable.h"

#include <algorithm>

#include "base/format.h"
#include "device/values.h"

namespace gimbal::gpu {

const DeviceBuffer::Piece* DeviceBuffer::piece_of(uint64_t offset) const {
  const auto behind = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                       [](uint64_t at, const Piece& p) { return at < p.begin; });
  return behind == pieces.begin() || offset >= behind[-1].end ? nullptr : &behind[-1];
}

Executable::Executable(const gimbal_program& p) {
  for (size_t i = 0; i < p.n_values; i++) {
    const gimbal_value& v = p.values[i];
    const auto rows = int32_t(std::max<int64_t>(1, rows_of(v)));
    if (v.extent == GIMBAL_STEP_ROWS) room_.rows = std::min(room_.rows, rows);
    if (v.extent == GIMBAL_OUT_ROWS) room_.out_rows = std::min(room_.out_rows, rows);
  }
}

// The bytes of a value; of one with strides below 0, some lie before its first element.
static std::pair<uint64_t, uint64_t> memory_of(const gimbal_value& v) {
  uint64_t before = 0;
  if (v.layout == GIMBAL_STRIDED)
    for (int i = 0; i < v.rank; i++)
      if (v.stride[i] < 0) before += uint64_t(v.dim[i] - 1) * uint64_t(-v.stride[i]);
  return {v.offset - before * uint64_t(info(DType(v.dtype)).bytes), v.offset + v.bytes};
}

// Whether an op depends on launches since the last wait: it accesses memory that they wrote, or writes memory
// that they read. Records its own accesses for later ops.
bool Executable::must_wait(const gimbal_program& p, const OpPlan& plan) {
  const gimbal_op& op = plan.op;
  std::vector<Touched> now;
  auto touch = [&](uint16_t value, bool written) {
    const gimbal_value& v = p.values[value];
    const auto [begin, end] = memory_of(v);
    now.push_back({v.slot, begin, end, written});
  };
  for (uint16_t in : inputs_of(op)) touch(in, false);
  for (uint16_t out : outputs_of(op)) touch(out, true);
  if (plan.scratch_bytes) now.push_back({Place::kScratch, 0, plan.scratch_bytes, true});
  bool wait = false;
  for (const Touched& a : touched_)
    for (const Touched& b : now)
      wait |= (a.written || b.written) && a.slot == b.slot && a.begin < b.end && b.begin < a.end;
  if (wait) touched_.clear();
  touched_.insert(touched_.end(), now.begin(), now.end());
  return wait;
}

void Executable::add(const gimbal_program& p, const OpPlan& plan, std::span<Kernel* const> kernels) {
  bool wait = must_wait(p, plan) || launches_.empty();  // the first: for earlier replays
  for (size_t i = 0; i < plan.launches.size(); i++) {
    launches_.push_back({plan.launches[i], kernels[i]});
    Planned& l = launches_.back();
    for (Place& place : l.place)
      if (place.slot == Place::kConstants) place.offset += constant_words_.size() * 4;
    l.after_all |= wait;
    wait = false;
  }
  constant_words_.insert(constant_words_.end(), plan.constants.begin(), plan.constants.end());
  scratch_bytes_ = std::max(scratch_bytes_, plan.scratch_bytes);
  launches_of_.push_back(plan.launches.size());
}

void Executable::run_counts(uint64_t* counts, size_t n_ops) const {
  for (size_t i = 0; i < std::min(n_ops, launches_of_.size()); i++)
    counts[i] = launches_of_[i] ? replays_ : 0;
}

gimbal_step Executable::fitting(gimbal_step s) const {
  return {std::clamp(s.rows, 0, room_.rows), std::clamp(s.out_rows, 0, room_.out_rows)};
}

Failure Executable::resolve(const Place& at, DeviceBuffer* const* slots, size_t n, Binding* out) const {
  const bool own = at.slot == Place::kScratch || at.slot == Place::kConstants;
  if (!own && (at.slot >= n || !slots[at.slot]))
    return {Failure::Invalid, format("a program reads buffer {}, which was not given", at.slot)};
  const DeviceBuffer& b = at.slot == Place::kConstants ? *constants : own ? *scratch : *slots[at.slot];
  const uint64_t begin = at.offset + at.lead, end = at.offset + at.bytes;
  if (begin > b.bytes || end < begin || end > b.bytes)
    return {Failure::Invalid, format("a program reads bytes {} to {} of buffer {}, which has {}", at.offset,
                                     end, at.slot, b.bytes)};
  const DeviceBuffer::Piece* piece = b.piece_of(begin);
  if (!piece || end - piece->base > DeviceBuffer::size_of(*piece))
    return {Failure::Unsupported, format("bytes {} to {} of buffer {} must be contiguous, but lie in several "
                                         "allocations: the buffer was made for another program",
                                         begin, end, at.slot)};
  *out = {piece->buffer, at.offset - piece->base, at.bytes};
  return {};
}

Failure Executable::recording(Runtime& runtime, DeviceBuffer* const* slots, size_t n, Binding nothing,
                              Binding step, Counters& counters, Recording** out) {
  for (const Recorded& r : recorded_)
    if (r.slots.size() == n && std::equal(r.slots.begin(), r.slots.end(), slots))
      return *out = r.recording, Failure();
  std::vector<Launch> bound;
  for (const Planned& planned : launches_) {
    Launch l;
    l.kernel = planned.kernel, l.step = step, l.after_all = planned.after_all;
    std::copy(std::begin(planned.params), std::end(planned.params), l.params);
    std::copy(std::begin(planned.groups), std::end(planned.groups), l.groups);
    Binding nothing_of[kMaxBindings];
    for (uint32_t i = 0; i < planned.bindings; i++) {
      // A part for each: WebGPU takes no range twice.
      const uint64_t part = nothing.bytes / kMaxBindings;
      l.binding[i] = {nothing.buffer, i * part, part};
      nothing_of[i] = l.binding[i];
      if (planned.place[i].slot == Place::kNothing) continue;
      if (Failure f = resolve(planned.place[i], slots, n, &l.binding[i])) return f;
    }
    if (planned.rebind) planned.rebind(l, nothing_of);
    bound.push_back(l);
  }
  Recorded fresh{{slots, slots + n}, nullptr};
  if (Failure f = runtime.record(bound, &fresh.recording)) return f;
  counters.recordings++;
  *out = fresh.recording;
  recorded_.push_back(std::move(fresh));
  return {};
}

void Executable::forget(Runtime& runtime, const DeviceBuffer* b) {
  std::erase_if(recorded_, [&](const Recorded& r) {
    if (b && std::find(r.slots.begin(), r.slots.end(), b) == r.slots.end()) return false;
    runtime.discard(r.recording);
    return true;
  });
}

}  // namespace gimbal::gpu
