// The options for input text and output length: the same in every program that
// generates.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "apps/options/sampling_options.h"
#include "runtime/generate.h"

namespace gimbal {

struct TextOptions {
  std::optional<std::string> prompt, file;
  bool print_tokens = false, stats = false;
  GenerateSettings settings;

  void declare(Arguments&);  // in two sections: text and sampling
  // Call it after parsing: fills in `settings`. Errors: Usage for values out of range, or two prompts.
  Status finish();
  // The prompt: -p, or else --file or stdin without a trailing newline. Errors: those of read_text().
  Result<std::string> text(const std::function<uint64_t()>& max_bytes) const;

 private:
  std::optional<int> max_tokens_;
  SamplingOptions sampling_;
};

}  // namespace gimbal
