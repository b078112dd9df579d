#include "apps/worker/engine.h"

#include <chrono>

#include "base/format.h"

namespace gimbal::worker {
namespace {

// "0: NVIDIA H200, 1: NVIDIA L4"
std::string devices_of(const gimbal_backend& table, int count) {
  std::string all;
  for (int i = 0; i < count; i++) {
    auto device = Device::open(table, i);
    const char* name = device ? (*device)->describe().name : nullptr;
    all += format("{}{}: {}", i ? ", " : "", i, name ? name : "does not open");
  }
  return all;
}

Result<std::unique_ptr<Device>> open_device(const gimbal_backend& table, int index,
                                            const std::string& options) {
  // With none at all, opening tells why.
  const int count = table.device_count();
  if (count > 0 && (index < 0 || index >= count))
    return Error{Code::NoBackend,
                 format("there is no {} device {}: found {} ({})", table.name, index,
                        count == 1 ? "one" : format("{}", count), devices_of(table, count)),
                 "give the number of one of these"};
  auto device = Device::open(table, index, options);
  if (device) return device;
  Error e = device.error();
  if (e.remedy.empty())
    e.remedy = format(
        "this program holds the {} backend alone and computes nowhere else; the program `gimbal` "
        "looks for other devices",
        table.name);
  return e;
}

}  // namespace

Result<Loaded> load_on(const gimbal_backend& table, const std::string& path, int index,
                       const Settings& settings) {
  const auto begin = std::chrono::steady_clock::now();
  auto file = Gguf::open(path);
  if (!file) return file.error();
  Loaded out;
  out.file = std::make_unique<Gguf>(std::move(*file));
  auto tokenizer = Tokenizer::create(*out.file);
  if (!tokenizer) return tokenizer.error();
  out.tokenizer = std::move(*tokenizer);
  auto device = open_device(table, index, settings.device_options);
  if (!device) return device.error();
  out.device = std::move(*device);
  auto blueprint = make_blueprint(*out.file, *out.device, settings.run);
  if (!blueprint) return blueprint.error();
  auto model = Model::load(std::move(*blueprint), settings.progress);
  if (!model) return model.error();
  out.model = std::move(*model);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace gimbal::worker
