// What changes from step to step, and what a step can be asked for, as an architecture declares it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "program/program.h"

namespace gimbal {

// One row of a step, as the inputs see it.
struct StepRow {
  int32_t token;           // -1: an embedding takes its place
  const float* embedding;  // f32[width]; or the state beside a token (Recorder::states()); nullptr: a token
  int32_t position;
  int32_t sequence;  // index among the sequences of the step
  int32_t last = 0;  // position of the sequence's last row in the step
};

// A value in Slot::Step that the runtime fills before each submit.
struct StepInput {
  enum class Kind : uint8_t {
    Rows,    // something for each row of the step: fill() writes it
    Wanted,  // i32: the rows that a result is wanted of
    Pages,   // i32[table, sequences]: the pages of each sequence in one pool
  };
  std::string name;
  Value value;
  Kind kind = Kind::Rows;
  size_t pool = 0;                                               // Pages
  size_t row_bytes = 0;                                          // Rows
  std::function<void(const StepRow&, std::byte* to)> fill = {};  // Rows; takes no memory
};

// What can be asked of a row.
enum class Output : uint8_t {
  Logits,  // f32[vocabulary]
  Hidden,  // f32[width]: what the output head is given; an encoder's result
  States,  // the same of every row of the step, whether anything is wanted of it or not
};
inline constexpr size_t kOutputs = 3;

}  // namespace gimbal
