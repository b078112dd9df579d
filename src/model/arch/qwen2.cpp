// Qwen2 and Qwen2.5: a llama with biases on q, k and v, whose heads are rotated by halves.
// Yang et al., "Qwen2 Technical Report", 2024.
#include "model/arch/decoder.h"

namespace gimbal::arch {

extern const ModelArch qwen2;
const ModelArch qwen2{
    "qwen2",
    [](const Gguf& file, Config& c) { return configure_decoder(file, c, RopePairs::Halves); },
    [](Recorder& m) {
      Decoder d;
      d.qkv_bias = true;
      record_decoder(m, d);
    },
};

}  // namespace gimbal::arch
