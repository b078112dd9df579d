// Llama and its many relatives: the plain decoder, SwiGLU, neighbouring values rotated together.
// Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023; Dubey et al., "The Llama 3
// Herd of Models", 2024.
#include "model/arch/decoder.h"

namespace gimbal::arch {

extern const ModelArch llama;
const ModelArch llama{
    "llama",
    [](const Gguf& file, Config& c) { return configure_decoder(file, c, RopePairs::Adjacent); },
    [](Recorder& m) { record_decoder(m, {}); },
};

}  // namespace gimbal::arch
