// Importance matrices: for each matrix of a model the mean square of each input over some text. Read from the
// files that `gimbal imatrix` and llama.cpp's `llama-imatrix` write (importance_sums.h).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

class Importance {
 public:
  // Errors: those of reading the file; Malformed with place, expected and found.
  static Result<Importance> open(const std::string& path);
  // Of bytes in memory; `name` is used in errors.
  static Result<Importance> parsed(Bytes bytes, const std::string& name);

  size_t size() const { return of_.size(); }
  // One weight per input; for stacked experts, one row of them after the other. nullptr: there is none.
  const std::vector<float>* find(std::string_view tensor) const;
  void add(std::string name, std::vector<float> weights) { of_[std::move(name)] = std::move(weights); }

 private:
  std::map<std::string, std::vector<float>, std::less<>> of_;
};

}  // namespace gimbal
