// Kernel texts compiled by the driver, one program per kernel, so that only the kernels of a model are
// compiled; cached in a folder for later processes.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "backends/opencl/api.h"

namespace gimbal::opencl {

class Programs {
 public:
  // `identity`: device and driver, part of the cache key beside text and options. `folder`: the cache folder;
  // empty: no cache. The Api must outlive this.
  Programs(const Api& api, cl_context context, cl_device_id device, std::string identity, std::string folder);

  // Creates the folder. Fails (Invalid) if it cannot be created or written to.
  Failure prepare();
  // `options`: for the driver's compiler. Errors: Unsupported, with its output.
  Failure build(std::string_view kernel, std::span<const uint8_t> text, const std::string& options,
                Program* out);

  struct Counts {
    uint64_t compiled = 0, loaded = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  Failure finish(const Program&, std::string_view kernel, const std::string& options);
  bool load(const std::string& path, const std::string& key, std::string_view kernel,
            const std::string& options, Program* out);
  void keep(const std::string& path, const std::string& key, const Program&) const;

  const Api& api_;
  const cl_context context_;
  const cl_device_id device_;
  const std::string identity_, folder_;
  Counts counts_;
};

}  // namespace gimbal::opencl
