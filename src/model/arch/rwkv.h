// The parts that RWKV's generations share: the mixture of a row with the one before it, and heads of a state.
#pragma once
#include "model/arch/recurrent.h"

namespace gimbal::arch {

// Of one layer: wkv.head_size, and as many heads as the width has.
struct WkvSizes {
  int head, heads;
};
WkvSizes read_wkv(Recorder&);

// The row of the sequence before x's row, less x's row; before the first row 0. `name`: of the state.
Value step_back(Recorder&, const std::string& name, Value x);
// x + back * weights, a vector of the file or a row of one.
Value blended(Recorder&, Value x, Value back, Value weights);
inline Value minus(Recorder& m, Value a, Value b) { return m.p.add(a, m.p.scale(b, -1)); }
// x [d, R], each value times that of the vector `<name>.weight`.
Value times(Recorder&, Value x, const std::string& name);
// Layer norm of each head of y, with `time_mix_ln` for all values: [d, R].
Value normed_heads(Recorder&, Value y);
// The steps to mix channels: `channel_mix_value` relu(`channel_mix_key` x)^2, [d, R].
Value channel_mix(Recorder&, Value x);
// Embedding and its norm; at the end norm and logits. `layer` [d, R] -> [d, R].
void record_rwkv(Recorder&, const std::function<Value(Recorder&, int layer, Value x)>& layer);
// Llama's ends and feed-forward layers around `mix`, which takes the normed rows.
void record_rwkv_in_llama(Recorder&, const std::function<Value(Recorder&, Value x)>& mix);

}  // namespace gimbal::arch
