// The transformer that most architectures are variations of: RMS norm, rotary attention with grouped heads, a
// gated feed-forward layer. An architecture says here where it differs, and has no forward pass of its own.
#pragma once
#include "model/arch.h"

namespace gimbal::arch {

struct Decoder {
  Value (ProgramBuilder::*gated)(Value gate, Value up) = &ProgramBuilder::swiglu;
  // A norm before attn_output and before ffn_down (Wang et al., "Foundation Transformers", 2022).
  bool sub_norms = false;
  // A matrix may come with a number "<name>.scale" that its product is multiplied by; it has no bias then.
  bool scales = false;
  // The biases of q, k and v must be there; otherwise each may be.
  bool qkv_bias = false;
};

void record_decoder(Recorder& m, const Decoder& d);

// For ModelArch::configure. Errors: Unsupported for experts and for heads whose values are not as wide as its
// keys.
Status configure_decoder(const Gguf& file, Config& c, RopePairs pairs);

}  // namespace gimbal::arch
