// What a program keeps from step to step: keys and values of a layer, or a state that every row changes.
#pragma once
#include <cstdint>

#include "tensor/shape.h"

namespace gimbal {

class Device;

// How it lies in a device's memory. The last dimension of its shape counts pages, which are equally large and
// one after the other in every layout.
enum class StateLayout : uint8_t {
  Keys,    // [head_dim, heads, kPagePositions, pages], as the device wants keys
  Values,  // likewise, values
  Dense,   // row after row
};

struct StateValue {
  uint16_t value;  // index into Program::values
  uint16_t pool;   // index into what the model declares (model/state.h)
  StateLayout layout;
};

uint64_t state_bytes(const Device&, const Shape&, StateLayout);

}  // namespace gimbal
