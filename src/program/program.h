// A model's computation, recorded once: a linear list of ops over planned memory. No control flow, no
// symbolic shapes; everything that changes per token is data in the step buffer. The exact memory plan, the
// kernel of every op and the cost follow without running anything.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/abi.h"
#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal {

class Device;

// The buffers that a program is bound to at submit time.
enum class Slot : uint32_t { Weights, Cache, Step, Work, Output, Count };
inline constexpr size_t kSlots = size_t(Slot::Count);
const char* name_of(Slot);

// ---- State kept from step to step: the keys and values of a layer, or a recurrent state that every row
// updates.

// Memory layout of a state. The last dimension of its shape counts pages, which are equally large and
// contiguous in every layout.
enum class StateLayout : uint8_t {
  Keys,    // [head_dim, heads, kPagePositions, pages], in the device's layout of keys
  Values,  // likewise, of values
  Dense,   // row-major
};

struct StateValue {
  uint16_t value;  // index into Program::values
  uint16_t pool;   // index into the model's state pools (model/state.h)
  StateLayout layout;
};

// Size on a device, in bytes.
uint64_t state_bytes(const Device&, const Shape&, StateLayout);

struct Value {
  uint16_t id = 0;  // index into Program::values
};

struct ValueInfo {
  std::string name;  // tensor name in the model file, name of the input, or name of the result
  Shape shape;
  uint16_t root;  // the value that owns the memory of this view; itself if it is no view
};

// Location of a weight in the model file: rows of a tensor (values of a vector) from first_row on, as many as
// the weight's shape has. A tensor of three dimensions holds one matrix per expert.
struct WeightSource {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t tensor = kNone;  // index into the model's TensorTable; kNone: of no model's file
  int64_t first_row = 0;
  int64_t expert = 0;
};

inline constexpr uint64_t kAlignment = 64;  // of every value's offset; abi.h promises it to backends

// Program::layer before the first layer (the embedding) and after the last one (the output head).
inline constexpr int kBeforeLayers = -1, kAfterLayers = INT32_MAX;

struct Program {
  std::vector<gimbal_value> values;
  std::vector<ValueInfo> info;  // of values, by index
  std::vector<gimbal_op> ops;
  std::vector<int> layer;             // of ops, by index; never decreases
  std::vector<uint16_t> weights;      // values read from the model file, by offset
  std::vector<WeightSource> sources;  // of weights, by index
  std::vector<int> weight_layer;      // of weights, by index: the layer that was current at the first use
  std::vector<StateValue> states;     // contents of Slot::Cache, by offset
  uint64_t slot_bytes[kSlots] = {};

  // ---- construction, by ProgramBuilder and partition(). The first failure is kept in `failed`; the program
  // must not be used then. Errors: OutOfMemory, a slot larger than any device; Unsupported, too many values.
  // add() creates a value with its own memory: at the slot's end, or for activations where plan_work() places
  // it.
  Value add(const std::string& name, const Shape&, Slot, uint64_t bytes, gimbal_layout, gimbal_extent,
            std::optional<Error>& failed);
  // A view of the same memory with other dimensions.
  Value add_view(Value of, const Shape&, std::optional<Error>& failed);
  // Moves a value to the end of the slot.
  void move_to(Slot, Value, std::optional<Error>& failed);

  gimbal_program view() const { return {values.data(), values.size(), ops.data(), ops.size()}; }
  // Input shapes of an op, and the shape of its first output, for a step with these numbers of rows.
  std::vector<Shape> input_shapes(const gimbal_op&, gimbal_step) const;
  Shape output_shape(const gimbal_op&, gimbal_step) const;
  const ValueInfo& output(const gimbal_op& op) const { return info[op.out[0]]; }

 private:
  bool has_room(std::optional<Error>& failed) const;
};

// A part of a program: neighbouring ops. It can be compiled and run alone, on the buffers of the whole.
struct OpRange {
  size_t begin, end;
};

// Over all values of the program: devices cut large buffers between values, in each part alike.
inline gimbal_program part_of(const Program& p, OpRange ops) {
  return {p.values.data(), p.values.size(), p.ops.data() + ops.begin, ops.end - ops.begin};
}

}  // namespace gimbal
