// A model opened for a test: file, device and weights in one object.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "discovery/registry.h"
#include "model/lora.h"
#include "runtime/session.h"

namespace gimbal::test {

struct EngineOptions {
  std::string device = "threads=1";  // the backend's options, see device/abi.h
  std::string backend = "cpu";
  RunOptions run;
  std::string kernel_config = {};  // files/ternary_layout.h
  std::vector<Lora> lora = {};
};

struct Engine {
  std::unique_ptr<ModelSource> file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;

  // Logits of the wanted positions of `tokens`, one row after the other, from a fresh session. `split`: how
  // many tokens each call of Session::advance gets (0: all at once). Fails the calling test on errors.
  std::vector<float> logits(const std::vector<int32_t>& tokens, const std::vector<int>& positions,
                            int split = 0, int batch = 0);
  // All positions.
  std::vector<float> all_logits(const std::vector<int32_t>& tokens, int split = 0, int batch = 0);
};

// Gives the error instead of failing: unsupported files are part of what tests look at.
Result<Engine> open_engine(const std::string& path, const EngineOptions& options);

// Names of the CPU variants that this machine can run, worst first; and those it cannot, with the reason.
struct Variants {
  std::vector<std::string> usable;
  std::vector<std::string> refused;
};
Variants cpu_variants();

}  // namespace gimbal::test
