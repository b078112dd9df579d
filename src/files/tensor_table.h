// The tensors of a model: names, shapes and formats, and where their bytes lie. An index into the table names
// a tensor wherever speed or memory counts: in a plan, and to the reader of its bytes.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/ternary_layout.h"
#include "tensor/dtype.h"

namespace gimbal {

inline constexpr uint32_t kMaxStoredRank = 8;

struct StoredTensor {
  std::string_view name;  // memory of the reader's
  DType type;
  // Of a model: 1 to 4 dims, all above 0. Of other files: 0 to 8 dims, any of which may be 0.
  uint32_t rank;
  int64_t dim[kMaxStoredRank];  // dim[0] is the fastest-varying (a row); unused dims are 1
  uint64_t offset;              // in the file `part`, from the file's start
  uint32_t part;                // which file of a model in several
  uint32_t index;               // in its table
  uint64_t bytes;   // as the reader gives them: info(type).bytes-sized blocks, row after row; behind them
                    // tensor_tail_bytes(type)
  uint64_t stored;  // bytes in the file: the same, except where the order of the bytes is another
  Ternary ternary = Ternary::None;  // that order; the reader gives rows of i2_s64 then
  TernaryTiles tiles;               // of that order, where they are known
  bool transposed =
      false;  // an array whose dims are named in the opposite order: column-major in an npy file

  // Product of all dims. Every reader checks that it stays below 2^63.
  int64_t values() const {
    int64_t n = 1;
    for (int64_t d : dim) n *= d;
    return n;
  }
};

// The name of the format that a tensor has in the file.
const char* stored_name(const StoredTensor&);

// Tensors of another file, joined to a model's under names with a suffix (model/lora.h).
struct Adapter {
  std::string suffix;
  std::string path;    // of the file: escaped
  float alpha, scale;  // `scale`: of texts that name none
};

class TensorTable {
 public:
  // Adds a tensor at the end and sets its index. False when the name is there already.
  bool add(StoredTensor);
  void add(const Adapter& adapter) { adapters_.push_back(adapter); }
  const std::vector<Adapter>& adapters() const { return adapters_; }

  // In the order of the file.
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  size_t size() const { return tensors_.size(); }
  bool empty() const { return tensors_.empty(); }
  const StoredTensor& operator[](size_t i) const { return tensors_[i]; }
  StoredTensor& operator[](size_t i) { return tensors_[i]; }
  const StoredTensor* find(std::string_view name) const;  // nullptr: there is none

  // The layout of some tensor is unknown, so that no reader can give its rows. The first reason is kept.
  void unreadable(Error why);
  // Errors: that reason.
  Status readable() const;

 private:
  std::vector<StoredTensor> tensors_;
  std::map<std::string_view, uint32_t> index_;
  std::vector<Adapter> adapters_;
  std::optional<Error> unreadable_;
};

}  // namespace gimbal
