// The path of a model, for programs that open files themselves: the one inside the program is written to a
// temporary file.
#pragma once
#include <string>

#include "engine/loader.h"

namespace gimbal {

class ModelPath {
 public:
  // Errors: Failed if no temporary file can be made.
  static Result<ModelPath> of(const ModelFile&);
  ModelPath(ModelPath&& o) noexcept;
  ModelPath& operator=(ModelPath&&) = delete;
  ~ModelPath();  // removes a temporary file

  const std::string& path() const { return path_; }

 private:
  ModelPath() = default;
  std::string path_;
  bool temporary_ = false;
};

}  // namespace gimbal
