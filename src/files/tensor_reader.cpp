#include "files/tensor_reader.h"

namespace gimbal {

Result<Bytes> TensorReader::map(size_t) const {
  return Error{Code::Unsupported, "the bytes of these tensors cannot be mapped, only read", ""};
}

}  // namespace gimbal
