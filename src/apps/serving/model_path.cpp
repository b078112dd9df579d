#include "apps/serving/model_path.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "model/embedded_model.h"

namespace gimbal {

Result<ModelPath> ModelPath::of(const ModelFile& source) {
  ModelPath out;
  out.path_ = source.path;
  if (!out.path_.empty()) return out;
  std::string name = "/tmp/gimbal-model-XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) return Error{Code::Failed, "the built-in model cannot be written to /tmp", "give a model file"};
  close(fd);
  out.path_ = name, out.temporary_ = true;
  const Bytes bytes = embedded_model();
  if (auto ok = write_file(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}); !ok)
    return ok.error();
  return out;
}

ModelPath::ModelPath(ModelPath&& o) noexcept
    : path_(std::move(o.path_)), temporary_(std::exchange(o.temporary_, false)) {}

ModelPath::~ModelPath() {
  if (temporary_) unlink(path_.c_str());
}

}  // namespace gimbal
