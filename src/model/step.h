// The inputs that change with each step, and the outputs of a step, as an architecture declares them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "program/program.h"

namespace gimbal {

// For models whose rotary embedding has sections (M-RoPE): time, line and column. All three of a token are
// equal.
struct RopePosition {
  int32_t time = 0, line = 0, column = 0;
  bool operator==(const RopePosition&) const = default;
};

// One patch of a picture, or of a sound's spectrum, as an encoder gets it (model/vision/patches.h).
struct PatchRow {
  const float* pixels;           // f32[3 * patch * patch]; of a sound f32[9 * bins]
  const float* added;            // f32[width]: bias and position
  int32_t line = 0, column = 0;  // in patches; of a sound: the time, and 0 behind its end
  int32_t first = 0, last = 0;   // rows of its window
  int32_t query = -1;            // of a row that is no patch but a question to all (MiniCPM-V): its number
  bool wanted = false;           // the first of those that become a row of the text model
};

// One row of a step, as the inputs see it.
struct StepRow {
  int32_t token;           // -1: an embedding replaces it
  const float* embedding;  // f32[width]; nullptr: a token. Of models that take states: the state
  int32_t position;
  int32_t sequence;      // index among the sequences of the step
  int32_t last = 0;      // position of the sequence's last row in the step
  int32_t sees_to = -1;  // position of the last row of its picture, if these see each other; else -1
  RopePosition place = {};
  std::span<const float> adapters = {};  // the scales of its sequence, by adapter of the model
  bool own_state = false;                // the state is this model's own, not the other one's
  const PatchRow* patch = nullptr;       // of an encoder of pictures, and only there
};

// The rows of a step that a value has: all, or those with results.
enum class StepRows : uint8_t { All, Wanted };

// A value in Slot::Step that the runtime fills before each submit.
struct StepInput {
  enum class Kind : uint8_t {
    Rows,      // data for each of these rows, written by fill()
    Wanted,    // i32: the rows with results, or those `offset` rows behind them
    Pages,     // i32[table, sequences]: the pages of each sequence in one pool
    Constant,  // the same in every step, written by fill() of a row without meaning
  };
  std::string name;
  Value value;
  Kind kind = Kind::Rows;
  size_t pool = 0;                                               // Pages
  int offset = 0;                                                // Wanted
  size_t row_bytes = 0;                                          // Rows
  std::function<void(const StepRow&, std::byte* to)> fill = {};  // Rows, Constant; allocates nothing
  StepRows of = StepRows::All;                                   // Rows
};

// The outputs of a row.
enum class Output : uint8_t {
  Logits,  // f32[vocabulary]
  Hidden,  // f32[width]: the input of the output head; an encoder's result
  States,  // the same, but for every row of the step
};
inline constexpr size_t kOutputs = 3;

}  // namespace gimbal
