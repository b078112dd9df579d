// Mixtures of storage formats, as users name them ("Q4_K_M"): which format each tensor gets, by its name, its
// layer and the model. The rules are those of llama.cpp v0.5.0 (src/llama-quant.cpp), so that a name means
// the same file size.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/model_source.h"
#include "files/tensor_table.h"

namespace gimbal {

enum class Mix : uint8_t {
#define GIMBAL_MIXTURE(id, ...) id,
#include "quantize/mixtures.def"
#undef GIMBAL_MIXTURE
};

struct Mixture {
  Mix id;
  const char* name;
  uint32_t file_type;  // general.file_type of the file
  DType format;        // of most tensors
};

std::vector<std::string> mixture_names();
// By name, in any case; "Q4_K" is "Q4_K_M", as are Q3_K and Q5_K. Errors: Usage, with a similar name.
Result<Mixture> mixture_named(std::string_view name);

// The format of tensors whose name matches a pattern: a POSIX extended regular expression, found anywhere in
// it.
struct FormatOfNames {
  std::string pattern;
  DType format;
};

struct QuantizeRules {
  Mixture mixture;
  bool pure = false;  // one format for all
  std::optional<DType> output, embedding;
  std::vector<FormatOfNames> names;

  // One line per rule, and back. Errors: Malformed.
  std::string text() const;
  static Result<QuantizeRules> parsed(std::string_view text);
};

struct TensorFormat {
  DType format;
  bool quantized = false;    // not a copy
  bool substituted = false;  // its rows are no multiple of the block that the rules want
  bool needs_importance = false;
};

// For each tensor of the model, in the order of its table. Errors: Usage for a pattern that is none.
Result<std::vector<TensorFormat>> formats_of(const ModelSource&, const QuantizeRules&, bool with_importance);

// For each tensor the format of the first pattern found in its name. Errors: Usage for a pattern that is
// none.
Result<std::vector<std::optional<DType>>> formats_by_name(const TensorTable&,
                                                          const std::vector<FormatOfNames>&);

}  // namespace gimbal
