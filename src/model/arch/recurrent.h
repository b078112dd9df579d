// The replacements of attention in models that keep a state, not positions: the mixers of Mamba, Mamba 2
// and gated delta nets, and LFM2's short convolution. Each takes and returns [d, R], and reads the layer's
// weights by their names in files.
#pragma once
#include "model/arch/blocks.h"

namespace gimbal::arch {

// ModelArch::configure of models whose files have no keys of attention.
inline Status without_attention(const Metadata&, const TensorTable&, Config&) { return Done{}; }

// The layer's attention, by attention.head_count and attention.head_count_kv of that layer; nullopt if it
// has no key heads.
std::optional<Attention> attention_of_layer(Recorder&, int layer);

// The vector [n] as it is, for each row of `like` [n, R].
Value for_each_row(Recorder&, Value vector, Value like);

// The norm of each row's step, b and c in Mamba.
enum class StepNorm {
  None,
  Unweighted,  // rms norm
  Weighted,    // rms norm by ssm_dt_norm, ssm_b_norm, ssm_c_norm
};
// Each channel has a step of its own, from few values; b and c are one vector each for all channels.
Value mamba_mixer(Recorder&, Value x, StepNorm);

// Whether a file may lack the norm ssm_norm in front of ssm_out.
enum class OutputNorm { Optional, Needed };
// Channels are grouped into heads with one step each, heads into groups with one b and c each.
Value mamba2_mixer(Recorder&, Value x, OutputNorm = OutputNorm::Needed);

// PLaMo 2: as Mamba 2 with one group, but b, c and the steps come from few values of the convolution's
// result, each normed, and the convolution is over the channels alone.
Value plamo2_mixer(Recorder&, Value x);

struct DeltaSizes {
  int head, key_heads, value_heads;  // values of a head; heads of q and k; heads of v
  int keys() const { return head * key_heads; }
  int values() const { return head * value_heads; }
};
DeltaSizes read_delta(Recorder&);
struct DeltaInputs {
  Value qkv;          // [2 keys() + values(), R], before the convolution
  Value z;            // [values(), R]: the output's gate
  Value beta, alpha;  // [value_heads, R]: for the rate and the decay; alpha with its bias
  HeadMap map;        // the head of q and k for a head of v
};
// A gated delta net: each row corrects the error of a head's matrix for the row's key.
Value delta_net(Recorder&, const DeltaSizes&, const DeltaInputs&);

// The place of a layer's state: one page for each sequence, and where the rows find theirs.
struct LayerState {
  Value values, sequences, pages;
};
// `values`: of one page, f32.
LayerState layer_state(Recorder&, const std::string& name, int64_t values);

// Kimi Delta Attention: a delta net whose state decays by a rate of its own for each value of a key.
Value kimi_delta_net(Recorder&, Value x);

// LFM2: a convolution over few positions between two gates.
Value short_convolution(Recorder&, Value x);

}  // namespace gimbal::arch
