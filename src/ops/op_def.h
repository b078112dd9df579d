// What an op is: one OpDef and one OpCheck each, both in the op's file of ops/defs/. Whatever records, plans,
// schedules, counts or judges ops reads these and knows no op by its name; only kernels do. ops.def is the
// list of all ops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ops/cases.h"
#include "ops/cost.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "tensor/shape.h"

namespace gimbal {

// What an op does with an input.
enum class Role : uint8_t {
  None,      // no such input
  Rows,      // row r of the output is computed from row r of this; the first one says how many rows there are
  Position,  // i32[R]: where each row stands in its sequence; read row by row
  Sequence,  // i32[R]: which sequence each row belongs to; read row by row
  Pages,     // i32[pages, sequences]: the page that holds a sequence's positions 0..63, 64..127, ...
  Weight,    // from the model file, the same for all rows: a matrix, which a device may pack, or a vector
  Cache,     // a KV cache that is read: [hd, heads, kPagePositions, pages]
  Written,   // a KV cache that is written to. The output is this very value
  Whole,     // any row of this may be read for any row of the output
  State,     // a recurrent state, f32[values, pages]: read, and written: the op's second output is this value
};
// Row r of such an input is read for row r of the output only.
constexpr bool by_row(Role r) { return r == Role::Rows || r == Role::Position || r == Role::Sequence; }

struct InputDef {
  const char* name = nullptr;
  Role role = Role::None;
};

// An op with its parameters and the shapes of its inputs, while its rule is applied.
struct ShapeCall {
  OpKind kind;
  const OpParams& params;
  std::span<const Shape> in;

  // Unsupported: "<op>(<shapes>): <rule>".
  Error refuse(const std::string& rule) const;
};

inline constexpr size_t kMaxInputs = 8;

struct OpDef {
  InputDef inputs[kMaxInputs] = {};  // ops.def says how many of them may not be left out
  // Names of OpParams::f and ::i, in order.
  const char* floats[std::size(OpParams{}.f)] = {};
  const char* integers[std::size(OpParams{}.i)] = {};
  // Multiplications and additions are nearly all that it does: with many rows it waits for arithmetic, with
  // few for memory. `gimbal bench` compares it with the limits of the device.
  bool product = false;
  // What one value of the output costs; see `cost` for ops where that is not all.
  double operations = 0;
  // The shape of the output, or refuse(). The number of inputs and their blocks have been checked.
  Result<Shape> (*shape)(const ShapeCall&) = nullptr;
  // Null: reads all inputs once, writes the output once, `operations` for each value. Else changes these.
  void (*cost)(Cost&, std::span<const Shape> in, const Shape& out, int64_t context) = nullptr;

  int max_inputs() const;
  bool has(Role) const;
  int first(Role) const;  // index of the first input of this role; -1: none
  // Index of the input whose rows are the output's.
  int rows_input() const { return first(Role::Rows); }
  // Bit i: input i is read row by row.
  uint32_t row_inputs() const;
  // The integer parameter of this name, or `otherwise` where the op has none.
  int64_t integer(const OpParams&, const char* name, int64_t otherwise) const;
};

// A realistic size to measure an op with: that of models of one to eight billion parameters.
struct BenchInput {
  Shape shape;                 // the last dimension is the rows where the input is read row by row
  std::vector<int32_t> whole;  // of i32 inputs; of floats their bits, or empty: random numbers of about 1
};
struct Bench {
  std::string text;  // for people: "2048 x 8192"
  std::vector<BenchInput> inputs;
  OpParams params = {};
  bool streams = false;  // goes over a weight or a cache that is larger than the processor's caches
};

inline constexpr int kNamedByOutput = -1;

// How an op is judged and measured: what conformance and the benchmark need besides. Apart from OpDef, so
// that programs without them do not carry the cases.
struct OpCheck {
  // The input whose format names a kernel ("mat_mul.q8_0") and chooses its cases; or the output.
  int named_by = 0;
  // The meaning, in double precision.
  void (*reference)(const reference::Call&) = nullptr;
  // |got - want| <= tolerance * magnitude, of the reference: a number of roundings, each 2^-24. `in`: as in
  // Case.
  double (*tolerance)(std::span<const Shape> in) = nullptr;
  // Empty where the op does not take this format.
  std::vector<Case> (*cases)(DType named) = nullptr;
  // The `copy`-th of several ops that are measured together.
  Bench (*bench)(DType named, int rows, int copy) = nullptr;
};

// Of a number that no op has: an op without inputs and functions.
const OpDef& def(OpKind);
const OpCheck& check_of(OpKind);

namespace ops {
#define GIMBAL_OP(number, id, ...) \
  extern const OpDef id;           \
  extern const OpCheck id##Check;
#include "ops/ops.def"
}  // namespace ops

}  // namespace gimbal
