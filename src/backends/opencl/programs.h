// Kernel texts compiled by the driver, one program a kernel, so that only what a model needs is compiled; and
// kept in a folder, so that the next process need not.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "backends/opencl/owned.h"

namespace gimbal::opencl {

class Programs {
 public:
  // `identity`: what compiled programs depend on besides text and options: device and driver. `folder`: of
  // the programs that are kept; empty: none are. The Api outlives this.
  Programs(const Api& api, cl_context context, cl_device_id device, std::string identity, std::string folder);

  // Makes the folder. Fails (Invalid) when there can be no such folder or nothing can be written to it.
  Failure prepare();
  // `options` for the driver's compiler. Errors: Unsupported, with what it says.
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
