// without libraries: no libllama answers.
#include "apps/commands/library_run.h"

#include "base/features.h"

namespace gimbal {

Result<int> run_in_library(const CommonOptions&, const ModelFile&, const Tokenizer&, const LibraryRun&) {
  return absent_feature_error("--backend llama.cpp", "libraries");
}

}  // namespace gimbal
