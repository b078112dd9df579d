// A model tried out before it is believed: on this device, the way in which a prompt is cut must not change
// what comes out, and its first layers must say what they say on the CPU.
#pragma once
#include <string>
#include <vector>

#include "runtime/session.h"

namespace gimbal {

struct ModelCheck {
  int tokens = 0;     // of the prompt that was tried
  double worst = 0;   // largest difference of logits, relative to their root mean square
  bool equal = true;  // bit for bit
  std::string wrong;  // what did not agree, with the numbers; empty when all did
  bool passed() const { return wrong.empty(); }
};

// Computes a prompt at once, in two batches, and its last tokens one by one ("decode equals prefill"): where
// all kernels are exact the logits' bits must agree, otherwise the logits to kFastAgreement. Needs a free
// sequence. A model that needs all of a text at once only computes it. Errors: those of the session;
// Malformed when the output is no number (check_logits).
Result<ModelCheck> check_splits(Model& model);

// The model's first `layers` layers with its output head, on `device` and on `cpu`, a few tokens each: the
// logits must agree to kDeviceAgreement. Loads these weights on both and lets them go. Errors: those of
// loading and computing; Malformed when the CPU's output is no number.
Result<ModelCheck> check_first_layers(const ModelSource& file, const Device& device, const Device& cpu,
                                      const RunOptions& options, int layers = 2);

// Relative to the root mean square of the logits. Exact kernels of two devices differ by what their roots and
// exponentials round differently, if at all; 1e-3 is far below what a quantized format loses, and far above
// that.
constexpr double kDeviceAgreement = 1e-3;
constexpr double kFastAgreement = 2e-2;  // kernels with an order of additions of their own, in 16-bit formats

}  // namespace gimbal
