// Prefixes of earlier texts in files that outlive the server: prompt files, as those of `--prompt-cache`
// (engine/prompt_cache.h).
#pragma once
#include <span>
#include <vector>

#include "base/file.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

// Thread-safe. Each call waits for the engine, and requests wait for it. Errors of all calls: Failed if the
// engine has ended, or its process was lost meanwhile.
class SavedPrompts {
 public:
  virtual ~SavedPrompts() = default;
  // The tokens of the longest kept beginning of the text.
  virtual Result<int> kept(std::span<const Token> text) = 0;
  // Writes that beginning to a draft, and leaves its commit to the caller. Returns its tokens; 0: none is
  // kept, and nothing was written. Errors: Failed with the system's reason; OutOfMemory; the device's.
  virtual Result<int> save(std::span<const Token> text, DraftFile& to) = 0;
  // Keeps the prefix in the file for later requests. Returns it. Errors: Usage with the reason if the file
  // fits another model, device, build or cache format, or is damaged; as above.
  virtual Result<std::vector<Token>> restore(const InputFile& from) = 0;
  // Drops the longest kept beginning of the text. Returns its tokens.
  virtual Result<int> erase(std::span<const Token> text) = 0;
};

}  // namespace gimbal
