// without ffi: no libllama answers.
#include "apps/commands/run.h"

#include "base/result.h"

namespace gimbal {

Result<int> run_in_library(const CommonOptions&, const ModelFile&, const Tokenizer&, const LibraryRun&) {
  return absent_feature_error("--backend llama.cpp", "ffi");
}

}  // namespace gimbal
