// A model in the formats of a mixture without a file of it: tensors are encoded while they are read.
#pragma once
#include "files/model_source.h"
#include "quantize/quantize.h"

namespace gimbal {

// The tensors that quantize() would write, with the metadata of the source. Reading encodes the rows that it
// touches, in the caller's thread. `source` and `importance` of the work must outlive the result. Errors:
// those of plan_quantization(); of reading: also Malformed for weights that are not finite.
Result<ModelSource> quantized_source(const QuantizeWork&);

}  // namespace gimbal
