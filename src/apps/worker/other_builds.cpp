#include "apps/worker/worker.h"

#include <algorithm>

#include "apps/toolkit/arguments.h"
#include "base/format.h"

namespace gimbal::worker {
namespace {

// The name in "--<name>-device"; empty when it is another option.
std::string device_option_of(const std::string& option) {
  constexpr std::string_view head = "--", tail = "-device";
  if (option.size() <= head.size() + tail.size() || option.compare(0, head.size(), head) != 0 ||
      option.compare(option.size() - tail.size(), tail.size(), tail) != 0)
    return "";
  std::string name = option.substr(head.size(), option.size() - head.size() - tail.size());
  const bool word = std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return word ? name : "";
}

bool one_of(const std::string& option, std::initializer_list<const char*> all) {
  return std::find(all.begin(), all.end(), option) != all.end();
}

}  // namespace

std::optional<Error> option_of_another_build(const std::string& option, const std::string& backend,
                                             bool has_gpus) {
  const std::string self = program_name(backend);
  if (const std::string name = device_option_of(option); !name.empty()) {
    if (nearest(name, {backend}) && has_gpus) return std::nullopt;
    if (name == backend)
      return Error{
          Code::Usage,
          format("{} chooses a device, and the {} backend of {} is one device", option, backend, self),
          "leave it out"};
    return Error{Code::Usage,
                 format("{} chooses a device of the backend '{}', and {} holds only '{}'", option, name, self,
                        backend),
                 format("use {}, or `gimbal`, which takes every backend there is", program_name(name))};
  }
  if (option == "--device" && !has_gpus)
    return Error{Code::Usage, format("--device chooses a GPU, and {} computes on the CPU alone", self),
                 "leave it out, or use the worker of a GPU backend, or `gimbal`"};
  if (has_gpus && one_of(option, {"-t", "--threads", "--cpu-variant"}))
    return Error{Code::Usage,
                 format("{} is about computing on the CPU, and {} computes on a GPU alone", option, self),
                 format("leave it out, or use {}, or `gimbal`", program_name("cpu"))};
  if (one_of(option, {"--backend", "--gpu-backend", "--gpu-layers", "--cpu-moe", "--n-cpu-moe",
                      "--override-tensor", "--strict", "--allow-software-devices"}))
    return Error{Code::Usage,
                 format("{} chooses between backends, and {} holds only '{}'", option, self, backend),
                 "leave it out, or use `gimbal`, which takes every backend there is"};
  return std::nullopt;
}

}  // namespace gimbal::worker
