#include "gpu/tensors/launch.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace gimbal::gpu {
namespace {

constexpr uint64_t kLanes = 64, kRowOfGroups = 65535;  // as UNIT in kernels/operands.inc
constexpr uint64_t kBindingStart = 256;                // of every device, and of elements of every size
enum { kInputs = 3, kBindingOfFacts = kInputs, kBindingOfResult, kBindings };

// Two operands may be parts of one buffer, even the same, and WebGPU binds no range twice. Ranges that
// overlap become one, of the result or of the first of them, and the kernel's arguments name it for the
// others.
void share_bindings(Launch& l, const Binding* nothing) {
  map_params p;
  std::memcpy(&p, l.params, sizeof p);
  Binding before[kBindings];
  std::copy_n(l.binding, kBindings, before);
  auto overlap = [](const Binding& a, const Binding& b) {
    return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };
  // A merged range may overlap one that neither part did, so this repeats until nothing changes.
  uint32_t from[] = {0, 1, 2, kBindingOfFacts, kBindingOfResult};
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t to : {uint32_t(kBindingOfResult), 0u, 1u})
      for (uint32_t i = 0; i < kInputs; i++) {
        if (i == to || from[i] != i || from[to] != to || (to < kInputs && to > i)) continue;
        Binding &a = l.binding[to], &b = l.binding[i];
        if (!overlap(a, b)) continue;
        const uint64_t end = std::max(a.offset + a.bytes, b.offset + b.bytes);
        a.offset = std::min(a.offset, b.offset), a.bytes = end - a.offset;
        for (uint32_t& f : from)
          if (f == i) f = to;
        changed = true;
      }
  }
  auto shift = [&](uint32_t i) { return uint32_t((before[i].offset - l.binding[from[i]].offset) / 4); };
  p.a_from = from[0], p.b_from = from[1], p.c_from = from[2];
  p.a_shift = shift(0), p.b_shift = shift(1), p.c_shift = shift(2), p.y_shift = shift(kBindingOfResult);
  for (uint32_t i = 0; i < kInputs; i++)
    if (from[i] != i) l.binding[i] = nothing[i];
  std::memcpy(l.params, &p, sizeof p);
}

}  // namespace

int64_t Operand::count() const {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dim[i];
  return n;
}

Operand::Range Operand::range() const {
  int64_t low = 0, high = 0;
  for (int i = 0; i < rank; i++) (stride[i] < 0 ? low : high) += (dim[i] - 1) * stride[i];
  const int64_t size = info(type).bytes;
  return {uint64_t(int64_t(offset) + low * size), uint64_t(int64_t(offset) + (high + 1) * size)};
}

// Dims of 1 say nothing, and neighbours that lie as one are merged.
Operand operand(const gimbal_value& v) {
  Operand o{v.slot, v.offset, DType(v.dtype)};
  for (int i = 0; i < v.rank; i++) {
    if (v.dim[i] == 1) continue;
    if (o.rank && v.stride[i] == o.stride[o.rank - 1] * o.dim[o.rank - 1]) o.dim[o.rank - 1] *= v.dim[i];
    else o.dim[o.rank] = v.dim[i], o.stride[o.rank] = v.stride[i], o.rank++;
  }
  return o;
}

Operand scratch(OpPlan& plan, DType type, int64_t n) {
  Operand o{Place::kScratch, plan.scratch_bytes, type, 1, {n}, {1}};
  const uint64_t bytes = uint64_t(n) * uint64_t(info(type).bytes);
  plan.scratch_bytes += (bytes + kBindingStart - 1) / kBindingStart * kBindingStart;
  return o;
}

Operand constants(OpPlan& plan, std::span<const uint16_t> values) {
  std::vector<uint32_t> words;
  for (uint16_t v : values) words.push_back(uint32_t(int32_t(int16_t(v))));
  return constants(plan, words);
}

Operand constants(OpPlan& plan, std::span<const uint32_t> words) {
  Operand o{Place::kConstants, plan.constants.size() * 4, DType::I32, 1, {int64_t(words.size())}, {1}};
  plan.constants.insert(plan.constants.end(), words.begin(), words.end());
  constexpr size_t kWords = kBindingStart / 4;
  plan.constants.resize((plan.constants.size() + kWords - 1) / kWords * kWords);
  return o;
}

uint32_t format_number(DType t) {
  constexpr DType kFormats[] = {DType::F32,     DType::F16,  DType::BF16, DType::F64, DType::F8_E4M3,
                                DType::F8_E5M2, DType::Bool, DType::U8,   DType::I8,  DType::U16,
                                DType::I16,     DType::U32,  DType::I32,  DType::U64, DType::I64};
  return uint32_t(std::find(std::begin(kFormats), std::end(kFormats), t) - kFormats);
}

TensorLaunch::TensorLaunch(OpPlan& plan, const char* kernel) : plan_(plan) {
  launch_.kernel = kernel, launch_.rebind = share_bindings, launch_.bindings = kBindings;
  p_.a_from = 0, p_.b_from = 1, p_.c_from = 2;
}

void TensorLaunch::bind(int binding, int facts, const Operand& o, const Operand& memory) {
  const auto range = memory.range();
  const uint64_t begin = range.begin / kBindingStart * kBindingStart, bytes = (range.end - begin + 3) / 4 * 4,
                 size = uint64_t(info(o.type).bytes);
  if (bytes > plan_.limits.max_binding_bytes)
    plan_.failure = {Failure::Unsupported,
                     format("an operation on tensors binds {} bytes at once, but the device allows {}: use "
                            "smaller tensors",
                            bytes, plan_.limits.max_binding_bytes)};
  launch_.place[binding] = {o.slot, uint32_t(range.begin - begin), begin, bytes};
  uint32_t* f = facts_ + size_t(facts) * kOperandFacts;
  f[0] = uint32_t((o.offset - begin) / size), f[1] = format_number(o.type), f[2] = uint32_t(o.rank);
  f[3] = uint32_t(std::countr_zero(size));
  for (int i = 0; i < o.rank; i++) f[4 + i] = uint32_t(o.dim[i]), f[12 + i] = uint32_t(o.stride[i]);
}

TensorLaunch& TensorLaunch::read(int i, const Operand& o) { return bind(i, i, o, o), *this; }
TensorLaunch& TensorLaunch::read_with_memory(int i, const Operand& o, const Operand& memory) {
  return bind(i, i, o, memory), *this;
}
TensorLaunch& TensorLaunch::write(const Operand& o) {
  result_ = o;
  return bind(kBindingOfResult, 3, o, o), *this;
}

void TensorLaunch::launch_elements() {
  const uint64_t n = uint64_t(result_.count()), size = uint64_t(info(result_.type).bytes);
  launch(size < 4 ? (n * size + 3) / 4 : n);
}

void TensorLaunch::launch(uint64_t lanes) { submit(lanes, (lanes + kLanes - 1) / kLanes); }
void TensorLaunch::launch_groups(uint64_t groups) { submit(groups, groups); }

void TensorLaunch::submit(uint64_t units, uint64_t groups) {
  p_.count = uint32_t(result_.count()), p_.units = uint32_t(units);
  launch_.groups[0] = uint32_t(std::min(groups, kRowOfGroups));
  launch_.groups[1] = uint32_t((groups + kRowOfGroups - 1) / kRowOfGroups);
  for (uint32_t n : launch_.groups)
    if (n > plan_.limits.max_groups)
      plan_.failure = {
          Failure::Unsupported,
          format("an operation on tensors needs {} groups, but the device launches at most {}: use "
                 "smaller tensors",
                 n, plan_.limits.max_groups)};
  std::memcpy(launch_.params, &p_, sizeof p_);
  launch_.place[kBindingOfFacts] = {Place::kConstants, 0, plan_.constants.size() * 4, sizeof facts_};
  plan_.constants.insert(plan_.constants.end(), std::begin(facts_), std::end(facts_));
  plan_.launches.push_back(launch_);
}

}  // namespace gimbal::gpu
