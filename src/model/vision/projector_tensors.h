// The tensors of a projector file in the form that encoders read: kernels as matrices, features in the order
// of rows, tables for the host.
#pragma once
#include <string>
#include <vector>

#include "model/vision/made_tensors.h"
#include "model/vision/vision_file.h"

namespace gimbal {

class ProjectorTensors {
 public:
  // All outlive it. `v`: its arch, settings and width are read.
  ProjectorTensors(const ModelSource& file, const VisionFile& v, MadeTensors& made)
      : file_(file), v_(v), made_(made) {}

  // The kernel of patches, or of sounds the convolutions along time. Errors of all: Malformed for another
  // shape than the metadata require; those of reading.
  Status add_input();
  // A table for the host; it is no weight of the program. Without such a tensor `to` stays empty.
  Status take(const char* name, std::vector<float>& to);
  bool taken(const StoredTensor&) const;
  // Adds the tensor in another form, as `as` or a name made of it. False: it stays as it is.
  Result<bool> remade(const StoredTensor&, const std::string& as);

 private:
  Error malformed(const std::string& what) const;
  Status add_kernel();
  Status add_taps();
  Status add_transposed(const StoredTensor&);
  Status add_reordered(const StoredTensor&);
  Status add_shift(const StoredTensor&);
  Status add_limits(const StoredTensor&, const std::string& as);

  const ModelSource& file_;
  const VisionFile& v_;
  MadeTensors& made_;
  std::vector<uint32_t> taken_;
};

}  // namespace gimbal
