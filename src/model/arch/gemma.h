// The common parts of Gemma's generations. R: the rows of a step.
#pragma once
#include "model/arch/blocks.h"

namespace gimbal::arch {

// Rows of token_embd times the root of the width; pictures' rows are not multiplied.
Value scaled_embedding(Recorder&);
// Of Gemma 3n and Gemma 4. Each token's vector for each layer, [width * layers, R]: sqrt(1/2) times the sum
// of a look-up and a normed product of the scaled embedding x [d, R]. Call it outside layers.
Value layer_inputs(Recorder&, int width, Value x);
// A layer's normed contribution from x [d, R] and its own input [width, R]: [d, R].
Value of_layer_input(Recorder&, Value input, Value x);
// Attention and its output product, of x [d, R]. With its `own` keys and values, which become the `last`;
// or with the `last` ones, which an earlier layer of this kind wrote.
Value sharing_attention(Recorder&, const Attention&, Value angles, std::optional<Remembered>& last, bool own,
                        Value x);

// The differences between Gemma 4's layers with a window and without one. `ahead`: added to the positions
// that the angles turn by.
struct Gemma4Kind {
  int head_dim, window;
  Value angles;
  std::optional<Value> seen{};  // where rows of a picture see each other
};
Gemma4Kind gemma4_kind(Recorder&, bool windowed, int ahead = 0);

}  // namespace gimbal::arch
