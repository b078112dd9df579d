// The definition of an op: one OpDef and one OpCheck, both in the op's file of ops/defs/. Recording,
// planning, scheduling, cost counting and verification use only these tables and name no op; only kernels do.
// ops.def is the list of all ops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ops/cases.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "tensor/shape.h"

namespace gimbal {

// The minimum traffic and arithmetic of an op on any device: the base of every "% of the limit".
struct Cost {
  double bytes_read = 0;  // weights and inputs, each once
  double bytes_written = 0;
  double operations = 0;  // multiplications and additions, counted separately
  Cost& operator+=(const Cost& o) {
    bytes_read += o.bytes_read, bytes_written += o.bytes_written, operations += o.operations;
    return *this;
  }
};

// `context`: positions that attention reads per row (including its own). Shapes as recorded; row extents that
// are capacities are passed in as the actual number of rows.
Cost cost(OpKind, std::span<const Shape> inputs, const Shape& output, int64_t context = 1);

// The role of an input.
enum class Role : uint8_t {
  None,      // no such input
  Rows,      // row r of the output depends on row r of this; the first such input defines the number of rows
  Position,  // i32[R]: the position of each row in its sequence; read row by row
  Sequence,  // i32[R]: the sequence of each row; read row by row
  Pages,     // i32[pages, sequences]: the pages of a sequence's positions 0..63, 64..127, ...
  Weight,    // from the model file, shared by all rows: a matrix, which a device may pack, or a vector
  Cache,     // a KV cache, read only: [hd, heads, kPagePositions, pages]
  Written,   // a KV cache, written in place: it is also the output
  Whole,     // any row of the output may depend on any row of this
  State,     // a recurrent state, f32[values, pages]: updated in place; it is also the op's second output
};
// Row r of such an input affects only row r of the output.
constexpr bool by_row(Role r) { return r == Role::Rows || r == Role::Position || r == Role::Sequence; }

struct InputDef {
  const char* name = nullptr;
  Role role = Role::None;
};

// An op with its parameters and input shapes, as passed to its shape rule.
struct ShapeCall {
  OpKind kind;
  const OpParams& params;
  std::span<const Shape> in;

  // Unsupported: "<op>(<shapes>): <rule>".
  Error refuse(const std::string& rule) const;
};

inline constexpr size_t kMaxInputs = 8;

struct OpDef {
  InputDef inputs[kMaxInputs] = {};  // ops.def states how many are required
  // Names of OpParams::f and ::i, in order.
  const char* floats[std::size(OpParams{}.f)] = {};
  const char* integers[std::size(OpParams{}.i)] = {};
  // A matrix product or similar: arithmetic-bound with many rows, memory-bound with few. `gimbal bench`
  // relates it to the device's roofline.
  bool product = false;
  // Operations per output value; see `cost` for ops with further costs.
  double operations = 0;
  // Returns the output shape, or refuse(). The number of inputs and their blocks are already checked.
  Result<Shape> (*shape)(const ShapeCall&) = nullptr;
  // Null: every input is read once, the output written once, `operations` per value. Else adjusts these.
  void (*cost)(Cost&, std::span<const Shape> in, const Shape& out, int64_t context) = nullptr;

  int max_inputs() const;
  bool has(Role) const;
  int first(Role) const;  // index of the first input of this role; -1: none
  // Index of the input whose rows match the output's.
  int rows_input() const { return first(Role::Rows); }
  // Bit i: input i is read row by row.
  uint32_t row_inputs() const;
  // The integer parameter of this name, or `otherwise` if the op has none.
  int64_t integer(const OpParams&, const char* name, int64_t otherwise) const;
};

// A realistic benchmark size, from models of one to eight billion parameters.
struct BenchInput {
  Shape shape;                 // the last dimension counts rows if the input is read row by row
  std::vector<int32_t> whole;  // contents of i32 inputs, or bits of floats; empty: random numbers of about 1
};
struct Bench {
  std::string text;  // for the report: "2048 x 8192"
  std::vector<BenchInput> inputs;
  OpParams params = {};
  bool streams = false;  // reads a weight or cache larger than the processor's caches
};

inline constexpr int kNamedByOutput = -1;

// Verification and benchmark of an op. Separate from OpDef, so that programs without them do not contain the
// cases.
struct OpCheck {
  // The input whose format names a kernel ("mat_mul.q8_0") and selects its cases; or the output.
  int named_by = 0;
  // The definition, in double precision.
  void (*reference)(const reference::Call&) = nullptr;
  // |got - want| <= tolerance * magnitude, of the reference: a number of roundings times 2^-24. `in`: as in
  // Case.
  double (*tolerance)(std::span<const Shape> in) = nullptr;
  // Empty if the op does not support this format.
  std::vector<Case> (*cases)(DType named) = nullptr;
  // The `copy`-th of several ops that are measured together.
  Bench (*bench)(DType named, int rows, int copy) = nullptr;
};

// For an unassigned number: an op without inputs and functions.
const OpDef& def(OpKind);
const OpCheck& check_of(OpKind);

namespace ops {
#define GIMBAL_OP(number, id, ...) \
  extern const OpDef id;           \
  extern const OpCheck id##Check;
#include "ops/ops.def"
}  // namespace ops

// Shape rules of ops: checked op by op while a program is recorded.

// The formats of a KV cache. Quantized formats store blocks of 32 values of one head at one position, so the
// head size must be a multiple of 32.
inline constexpr DTypeSet kCacheTypes = set_of(DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q5_0,
                                               DType::Q4_1, DType::Q4_0, DType::IQ4_NL);

// Returns the shape of the output. Errors: Unsupported, with the op, the shapes found and the violated rule.
// Caches are [hd, heads, kPagePositions, pages] in one of kCacheTypes.
Result<Shape> output_shape(OpKind, const OpParams&, std::span<const Shape> inputs);

// The activation format of a matmul with weights of format `w`: F32 for float weights, else int8 codes
// (tensor/activations.h), as tensor/formats.def states. It is part of gimbal's definition of a linear layer
// and therefore the same on every device.
DType activation_type(DType w);

}  // namespace gimbal
