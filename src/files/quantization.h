// The quantization of a model in one word, as users name files: "Q4_K_M".
#pragma once
#include <string>

#include "files/model_source.h"

namespace gimbal {

// `general.file_type` of the file (the numbers of GGUF's specification) if the file has tensors of that
// format, else the format of most bytes. In capitals; empty if the file has no tensors.
std::string quantization_of(const ModelSource&);

}  // namespace gimbal
