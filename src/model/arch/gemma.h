// What Gemma 3n and Gemma 4 have in common. R: the rows of a step.
#pragma once
#include "model/arch/blocks.h"

namespace gimbal::arch {

// Each token's vector for each layer, [width * layers, R]: half a look-up, half a product of the scaled
// embedding x [d, R]. Outside of layers.
Value layer_inputs(Recorder&, int width, Value x);
// What a layer makes of x [d, R] and its own input [width, R]: [d, R], normed.
Value of_layer_input(Recorder&, Value input, Value x);
// Attention and its last product, of x [d, R]. With keys and values of its `own`, which are the `last` from
// then on; or to the `last` of this kind, which an earlier layer wrote.
Value sharing_attention(Recorder&, const Attention&, Value angles, std::optional<Remembered>& last, bool own,
                        Value x);

}  // namespace gimbal::arch
