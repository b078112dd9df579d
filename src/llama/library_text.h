// Texts that a libllama writes: it computes the logits, and gimbal's tokenizer, sampler, grammars and stop
// strings do the rest, as for its own engine. The words of both differ only as their logits do.
#pragma once
#include "llama/llama_process.h"
#include "runtime/generate.h"

namespace gimbal::llama {

struct LibraryTexts {
  int context = 0;  // positions
  int threads = 1;
};

// One text after another, of a model that `process` has loaded. A text with the tokens of the one before at
// its beginning computes only the rest.
class LibraryWriter {
 public:
  // Process and tokenizer outlive it.
  LibraryWriter(LlamaProcess& process, const Tokenizer& tokenizer, const LibraryTexts& texts)
      : process_(process), tokenizer_(tokenizer), texts_(texts) {}

  using Emit = std::function<bool(const TokenEvent&)>;
  // As gimbal::generate() without a session. Drafts are not used. Errors: those of check_text(), the
  // sampler and the constraint; Unsupported for certificates; the process's.
  Result<Generated> write(const std::vector<Token>& prompt, const GenerateSettings&, const Emit&,
                          std::string* rest = nullptr);

 private:
  Result<std::vector<float>> logits(const TextState&, const GenerateSettings&, bool& cancelled);

  LlamaProcess& process_;
  const Tokenizer& tokenizer_;
  const LibraryTexts texts_;
  std::vector<Token> held_;  // the tokens that the process has
};

}  // namespace gimbal::llama
