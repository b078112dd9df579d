// The numbers behind an importance matrix: for each matrix of a model the sums of squares of its inputs and
// the number of rows that they are of. They can be continued with more text, and are read from and written to
// the files of llama.cpp's `llama-imatrix`: GGUF, and the binary form of older releases. The contents of
// files are not trusted.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "files/model_source.h"

namespace gimbal {

// Of one tensor: a row of sums for each matrix in it (experts, heads).
struct InputSums {
  std::vector<double> squares;  // of each input, one matrix after the other
  std::vector<double> rows;     // of each matrix: the number of inputs that were added

  size_t columns() const { return squares.size() / rows.size(); }
  // Mean squares; 1 for a matrix that got no row.
  std::vector<float> means() const;
};

class ImportanceSums {
 public:
  // Errors: those of reading the file; Malformed with place, expected and found.
  static Result<ImportanceSums> open(const std::string& path);
  // Of bytes in memory; `name` is used in errors.
  static Result<ImportanceSums> parsed(Bytes bytes, const std::string& name);

  const std::map<std::string, InputSums, std::less<>>& tensors() const { return of_; }
  // The sums of a tensor; made of zeros at the first call. `columns`, `matrices`: as at every call.
  InputSums& of(std::string_view tensor, size_t columns, size_t matrices);
  void add(std::string tensor, InputSums sums) { of_[std::move(tensor)] = std::move(sums); }
  void remove(const std::string& tensor) { of_.erase(tensor); }
  void add_text(const std::string& name);  // to `texts`, once
  // Errors: Malformed if a tensor has another size in the model, or the model has none of them.
  Status check_made_for(const ModelSource&) const;
  // Adds the sums, windows and texts of another one. Errors: Usage if it is not counted; Malformed if a
  // tensor has another size there.
  Status add(const ImportanceSums& other, const std::string& name);

  std::vector<std::string> texts;  // the names of the files that were read
  uint32_t windows = 0;            // of all texts
  uint32_t window = 0;             // tokens of one; 0: unknown
  bool counted = true;  // false: of the older form, where `rows` are windows, and of all experts together

  // The usual forms, whole or not at all. The older one has means and no counts, of one text. Errors: the
  // system's.
  Status write_gguf(const std::string& path) const;
  Status write_old(const std::string& path) const;

 private:
  std::map<std::string, InputSums, std::less<>> of_;
};

}  // namespace gimbal
