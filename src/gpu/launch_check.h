// Checks the requirements that every API has on a launch while it is recorded, so that an engine error is
// reported instead of causing wrong results or a lost device.
#pragma once
#include <string>

#include "base/format.h"
#include "gpu/runtime.h"

namespace gimbal::gpu {

inline Failure check_inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  if (offset <= size && bytes <= size - offset) return {};
  return {Failure::Invalid, format("bytes {} to {} of a buffer of {}", offset, offset + bytes, size)};
}

template <class SizeOf>
Failure check_binding(const Facts& facts, const Binding& b, SizeOf size_of) {
  if (!b.buffer) return {Failure::Invalid, "is not bound"};
  if (b.offset % facts.binding_alignment || b.bytes % 4 || !b.bytes)
    return {Failure::Invalid,
            format("is bound at {}, {} bytes; the offset must be a multiple of {}, the size of 4, and not 0",
                   b.offset, b.bytes, facts.binding_alignment)};
  if (b.bytes > facts.max_binding_bytes)
    return {Failure::Invalid,
            format("has {} bytes; at most {} can be bound at once", b.bytes, facts.max_binding_bytes)};
  return check_inside(b.offset, b.bytes, size_of(b.buffer));
}

// `kernel`: the code of l.kernel. `size_of` returns the bytes of a Buffer*.
template <class SizeOf>
Failure check_launch(const Facts& facts, const KernelCode& kernel, const Launch& l, SizeOf size_of) {
  auto wrong = [&](std::string text) {
    return Failure{Failure::Invalid, format("kernel {}: {}", kernel.name, text)};
  };
  for (uint32_t i = 0; i < kernel.bindings; i++)
    if (Failure f = check_binding(facts, l.binding[i], size_of))
      return wrong(format("binding {} {}", i, f.text));
  if (Failure f = check_binding(facts, l.step, size_of)) return wrong("the step data " + f.text);
  if (l.step.bytes < 8)
    return wrong(format("the step data have {} bytes, but hold two numbers", l.step.bytes));
  for (uint32_t n : l.groups)
    if (n < 1 || n > facts.max_groups)
      return wrong(format("{} x {} x {} groups; each must be 1 to {}", l.groups[0], l.groups[1], l.groups[2],
                          facts.max_groups));
  return {};
}

}  // namespace gimbal::gpu
