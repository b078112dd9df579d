// Writes a model with its matrices in other formats, and verifies such a file against its source: equal
// sources, rules and importance give equal bytes, on every machine.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/growing_file.h"
#include "files/model_source.h"
#include "quantize/importance.h"
#include "quantize/mixture.h"

namespace gimbal {

// Changes with the bytes that the encoders give.
inline constexpr uint32_t kEncoderVersion = 2;

// The origin of a quantized file, stored in its metadata (gimbal.quantize.*).
struct Derivation {
  QuantizeRules rules;
  std::string source_sha256;      // of all files of the source, one behind the other
  std::string importance_sha256;  // of the file; empty: without
};

struct QuantizeWork {
  const ModelSource& source;
  const Derivation& derivation;
  const Importance* importance = nullptr;
  int threads = 1;
  bool keep_split = false;                                           // as many files as the source has
  std::function<bool(uint64_t done, uint64_t total)> progress = {};  // of values; false ends the work
  // Called for each file with the remains of an earlier run, and the bytes that it need not make again.
  std::function<void(const GrowingFile&, GrowingFile::Found)> found = {};
  size_t piece = GrowingFile::kPiece;  // bytes between two records of an unfinished file
};

struct QuantizedTotals {
  uint64_t bytes = 0, from_bytes = 0, values = 0;  // of weights
  size_t quantized = 0, substituted = 0, requantized = 0;
  std::vector<std::string> without_importance;  // quantized matrices that the importance matrix lacks
};

// The totals of a quantization, without performing it. Errors: Usage for rules that do not suit the model;
// Malformed for importance of another model's.
Result<QuantizedTotals> plan_quantization(const QuantizeWork&);

// The paths of the files: `path`, or NAME-00001-of-0000N.gguf of it.
std::vector<std::string> paths_of(const QuantizeWork&, const std::string& path);

// Each file whole or not at all. An interrupted run leaves parts (base/growing_file.h), and the next one
// continues them: they begin with the derivation, so only equal work does. Errors: those of the plan, of
// reading and of writing.
Status quantize(const QuantizeWork&, const std::string& path);

// The origin stored in a file. Errors: Usage if it stores none; Unsupported for another version of the
// encoders.
Result<Derivation> derivation_of(const ModelSource& quantized);

// Makes the files again and compares. Errors: Failed with the first differing byte.
Status check_quantized(const QuantizeWork&, const std::string& path);

// A model in the formats of a mixture without a file of it: tensors are encoded while they are read.

// The tensors that quantize() would write, with the metadata of the source. Reading encodes the rows that it
// touches, in the caller's thread. `source` and `importance` of the work must outlive the result. Errors:
// those of plan_quantization(); of reading: also Malformed for weights that are not finite.
Result<ModelSource> quantized_source(const QuantizeWork&);

}  // namespace gimbal
