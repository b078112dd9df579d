// Pieces of pictures to rows for a text model, one piece a step.
#pragma once
#include "model/vision/patches.h"
#include "runtime/model.h"

namespace gimbal {

// The options of an encoder's plan, for pieces of at most this many patches.
RunOptions encoder_options(const VisionFile&, int patches, const KernelPreference& kernels);

class PictureEncoder {
 public:
  // `model`: loaded from `file.source` with encoder_options(). Both outlive the encoder.
  PictureEncoder(Model& model, const VisionFile& file) : model_(model), file_(file) {}

  // `go_on`: Batch::go_on. Errors: those of patch_rows(); Usage for more patches than the model was loaded
  // for; Malformed for NaN or infinity; cancelled(); the device's.
  Result<EmbeddingsPtr> encode(const Piece&, std::function<bool(size_t done, size_t parts)> go_on = {});

 private:
  Model& model_;
  const VisionFile& file_;
};

}  // namespace gimbal
