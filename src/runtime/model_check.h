// Checks a model on its device before use: splitting a prompt into batches must not change the results, and
// the first layers must agree with the CPU.
#pragma once
#include <string>
#include <vector>

#include "runtime/session.h"

namespace gimbal {

struct ModelCheck {
  int tokens = 0;     // of the tested prompt
  double worst = 0;   // largest difference of logits, relative to their root mean square
  bool equal = true;  // bit for bit
  std::string wrong;  // the disagreement, with the numbers; empty if none
  bool passed() const { return wrong.empty(); }
};

// Computes a prompt at once, in two batches, and its last tokens one by one ("decode equals prefill"): if
// all kernels are exact, the logits' bits must agree, otherwise the logits to kFastAgreement. Needs a free
// sequence. With a model that needs the whole text at once, it only computes the prompt. Errors: those of
// the session; Malformed if the output has NaN or infinity (check_logits).
Result<ModelCheck> check_splits(Model& model);

// The model's first `layers` layers with its output head, on `device` and on `cpu`, a few tokens each: the
// logits must agree to kDeviceAgreement. Loads these weights on both and frees them. Errors: those of loading
// and computing; Malformed if the CPU's output is NaN.
Result<ModelCheck> check_first_layers(const ModelSource& file, const Device& device, const Device& cpu,
                                      const RunOptions& options, int layers = 2);

// Relative to the root mean square of the logits. Exact kernels of two devices differ at most by the
// rounding of roots and exponentials; 1e-3 is far above that, and far below the loss of a quantized
// format.
constexpr double kDeviceAgreement = 1e-3;
constexpr double kFastAgreement = 2e-2;  // kernels that do not sum in the reference order; 16-bit formats

}  // namespace gimbal
