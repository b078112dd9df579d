// The options that say what text goes in and how much comes out: the same words in every program that
// generates.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "apps/shared/sampling_options.h"
#include "runtime/generate.h"

namespace gimbal {

struct TextOptions {
  std::optional<std::string> prompt, file;
  bool print_tokens = false, stats = false;
  GenerateSettings settings;

  void declare(Arguments&);  // as two sections: text and sampling
  // After parsing: fills in `settings`. Errors: Usage for values out of range, and for two prompts.
  Status finish();
  // The prompt: -p, or --file or else stdin without the newline at its end. Errors: those of read_text().
  Result<std::string> text(const std::function<uint64_t()>& max_bytes) const;

 private:
  std::optional<int> max_tokens_;
  SamplingOptions sampling_;
};

}  // namespace gimbal
