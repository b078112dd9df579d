// How the tensors of a GGUF file follow from those of a folder. Most are the same bytes under another name
// and are read directly; rows may be in another order, and small tensors become f32.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "files/plain_reader.h"
#include "files/tensor_reader.h"
#include "files/tensor_table.h"

namespace gimbal {

struct Recipe {
  // Rows of a stored tensor, which follow those of the piece before.
  struct Piece {
    uint32_t tensor;  // index in the table of the shards
    int64_t first_row, rows;
    // Of fp8: the stored tensor of its scales, one for each block of rows and columns; the values become
    // bf16.
    int32_t scales = -1;
    int64_t block_rows = 0, block_columns = 0;
  };
  enum class Change : uint8_t { None, AddOne };

  std::vector<Piece> pieces;
  int64_t row_values = 0;        // of a row, in all pieces the same; of a vector 1
  std::vector<uint32_t> order;   // row r of a piece is its row order[r]; empty: as they are. For one piece.
  bool to_f32 = false;           // else the stored format
  Change change = Change::None;  // of f32
  std::string made;              // the bytes, if no stored tensor has them
};

// Reads by recipes from the shards of a folder.
class FolderReader final : public TensorReader {
 public:
  // `memory`: of names and metadata. `others`: files without tensors that the model depends on.
  FolderReader(std::string name, std::shared_ptr<const PlainReader> shards, TensorTable stored,
               std::deque<FileBytes> others, std::shared_ptr<const void> memory)
      : name_(std::move(name)),
        shards_(std::move(shards)),
        stored_(std::move(stored)),
        others_(std::move(others)),
        memory_(std::move(memory)) {}

  // The tensors and, by index, their recipes. Before the first read().
  void serve(TensorTable tensors, std::vector<Recipe> recipes) {
    tensors_ = std::move(tensors), recipes_ = std::move(recipes);
  }

  Status read(size_t tensor, uint64_t offset, void* to, size_t bytes) const override;
  Result<Bytes> map(size_t tensor) const override;
  uint64_t file_bytes() const override { return shards_->file_bytes(); }
  FileIdentity identity() const override;
  bool is(const std::string& path) const override;

 private:
  DType type_of_rows(const Recipe&) const;
  Status read_rows(const Recipe&, int64_t first, int64_t end, std::byte* to) const;
  Status read_scaled(const Recipe::Piece&, int64_t row_values, int64_t first, int64_t rows,
                     std::byte* to) const;
  Status read_part(const Recipe&, uint64_t offset, std::byte* to, size_t bytes) const;

  std::string name_;
  std::shared_ptr<const PlainReader> shards_;
  TensorTable stored_;
  std::deque<FileBytes> others_;
  std::shared_ptr<const void> memory_;
  TensorTable tensors_;
  std::vector<Recipe> recipes_;
};

}  // namespace gimbal
