// Gemma 3: SigLIP, of whose rows squares of neighbours become their mean. Gemma Team, "Gemma 3 Technical
// Report", 2025; Zhai et al., "Sigmoid Loss for Language Image Pre-Training", 2023.
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {

extern const VisionArch gemma3;
const VisionArch gemma3{.projector = "gemma3",
                        .record =
                            [](Recorder& m) {
                              Value x = patches(m);
                              const Blocks b = blocks(m);
                              for (int i = 0; i < m.config.layers && !m.failed(); i++) x = block(m, b, i, x);
                              m.no_layer();
                              x = mean(m, arch::layer_norm(m, "post_ln", x), patches_per_row(m));
                              m.output(Output::Hidden, product(m, "mm.input_projection",
                                                               arch::rms_norm(m, "mm.soft_emb_norm", x)));
                            },
                        .legacy_names = true,
                        .together = true,
                        .transposed_projection = true};

}  // namespace gimbal::vision
