// Weights with low-rank adapters added to them: W + s B A, rounded once to the format of W. The adapters are
// joined to the source (add_lora() of model/lora.h), whose tensors they follow.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "files/model_source.h"

namespace gimbal {

class MergedWeights {
 public:
  // Errors: Unsupported for adapters of quantized weights; Malformed for shapes that do not match. The source
  // must outlive the result.
  static Result<MergedWeights> of(const ModelSource& source);

  bool is_adapter(const StoredTensor& t) const { return adapter_[t.index]; }
  size_t changed() const { return changed_.size(); }  // weights that adapters change

  // Bytes [offset, offset + bytes) of a weight, with its adapters. Fast if read from its beginning to its
  // end. Errors: those of reading.
  Status read(const StoredTensor&, uint64_t offset, void* to, size_t bytes);

 private:
  struct Pair {
    const StoredTensor *down, *up;
    float factor;
  };
  struct Loaded {
    std::vector<float> down, up;
    int64_t rank;
    float factor;
  };

  explicit MergedWeights(const ModelSource& source) : source_(source), adapter_(source.tensors().size()) {}
  Status load(const StoredTensor&, const std::vector<Pair>&);
  Status merge_rows(const StoredTensor&, int64_t first);

  const ModelSource& source_;
  std::vector<bool> adapter_;
  std::map<uint32_t, std::vector<Pair>> changed_;  // by index of the weight
  // The weight in work: its adapters, and some of its rows.
  const StoredTensor* tensor_ = nullptr;
  std::vector<Loaded> loaded_;
  int64_t first_row_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace gimbal
