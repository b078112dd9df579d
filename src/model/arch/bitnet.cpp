// BitNet: weights of -1, 0 and 1, a norm before each product that closes a block.
// Ma et al., "The Era of 1-bit LLMs: All Large Language Models are in 1.58 Bits", 2024. `bitnet` is the gated
// SiLU of 1bitLLM's reproduction; `bitnet-b1.58` the squared ReLU of Ma et al., "BitNet b1.58 2B4T Technical
// Report", 2025.
#include "model/arch/decoder.h"

namespace gimbal::arch {
namespace {

Status configure(const Gguf& file, Config& c) { return configure_decoder(file, c, RopePairs::Halves); }

void record(Recorder& m, Value (ProgramBuilder::*gated)(Value, Value)) {
  Decoder d;
  d.gated = gated;
  d.sub_norms = d.scales = true;
  record_decoder(m, d);
}

}  // namespace

extern const ModelArch bitnet, bitnet_b158;
const ModelArch bitnet{"bitnet", configure, [](Recorder& m) { record(m, &ProgramBuilder::swiglu); }};
const ModelArch bitnet_b158{"bitnet-b1.58", configure,
                            [](Recorder& m) { record(m, &ProgramBuilder::squared_relu_glu); }};

}  // namespace gimbal::arch
