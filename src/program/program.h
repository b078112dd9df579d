// A model's computation, recorded once: a straight list of ops over planned memory. No control flow, no
// symbolic shapes; what changes from token to token is data in the step buffer. From it follow, without
// running anything, the exact memory plan, the kernel of every op, and the cost.
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

// The buffers a program is bound to at submit time.
enum class Slot : uint32_t { Weights, Cache, Step, Work, Output, Count };
inline constexpr size_t kSlots = size_t(Slot::Count);
const char* name_of(Slot);

// ---- State: what a program keeps from step to step, keys and values of a layer, or a state that every row
// changes.

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

// Bytes of it on a device.
uint64_t state_bytes(const Device&, const Shape&, StateLayout);

struct Value {
  uint16_t id = 0;  // index into Program::values
};

struct ValueInfo {
  std::string name;  // the tensor's name in the model file, the input's name, or what the op computes
  Shape shape;
  uint16_t root;  // the value whose memory this one is a view of; itself otherwise
};

// Where the values of a weight are in the model's file: rows of a tensor from the first one on, as many as
// the weight's shape says; of a vector, values. A tensor of three dimensions holds one matrix per expert.
struct WeightSource {
  std::string tensor;
  int64_t first_row = 0;
  int64_t expert = 0;
};

inline constexpr uint64_t kAlignment = 64;  // of every value's offset; abi.h promises it to backends

// Program::layer of what comes before the first layer (the embedding) and after the last (the output head).
inline constexpr int kBeforeLayers = -1, kAfterLayers = INT32_MAX;

struct Program {
  std::vector<gimbal_value> values;
  std::vector<ValueInfo> info;  // of values, index by index
  std::vector<gimbal_op> ops;
  std::vector<int> layer;         // of ops, index by index; never falls
  std::vector<uint16_t> weights;  // values that are filled from the model file, in the order of their offsets
  std::vector<WeightSource> sources;  // of weights, index by index
  std::vector<StateValue> states;     // what lies in Slot::Cache, in the order of the offsets
  uint64_t slot_bytes[kSlots] = {};

  // ---- how programs are made: ProgramBuilder, and partition(). A first failure is kept in `failed`;
  // the program is of no use then. Errors: OutOfMemory, a slot larger than any device; Unsupported, too many
  // values. A value with memory of its own: behind what its slot holds, or for activations, wherever
  // plan_work() says.
  Value add(const std::string& name, const Shape&, Slot, uint64_t bytes, gimbal_layout, gimbal_extent,
            std::optional<Error>& failed);
  // The same memory seen with other dimensions.
  Value add_view(Value of, const Shape&, std::optional<Error>& failed);
  // Gives a value its place behind what the slot holds.
  void move_to(Slot, Value, std::optional<Error>& failed);

  gimbal_program view() const { return {values.data(), values.size(), ops.data(), ops.size()}; }
  // Input shapes of an op, and its first output's, with row extents replaced by these numbers of rows.
  std::vector<Shape> input_shapes(const gimbal_op&, gimbal_step) const;
  Shape output_shape(const gimbal_op&, gimbal_step) const;
  const ValueInfo& output(const gimbal_op& op) const { return info[op.out[0]]; }

 private:
  bool has_room(std::optional<Error>& failed) const;
};

}  // namespace gimbal
