// Replaces a backend's code while the program runs.
#include "base/format.h"
#include "device/reason.h"
#include "engine/engine.h"

namespace gimbal {

Status Engine::verify_code(const LibraryPtr& code, const BackendReport& found, Reloaded& receipt) {
  for (const DeviceReport& seen : found.devices) {
    auto device = Device::open(code, seen.index);
    if (!device) return device.error();
    const Device& d = **device;
    receipt.devices.push_back(d.id());
    if (options_.verify == Verify::Never) continue;
    std::vector<size_t> usable;
    for (size_t i = 0; i < d.kernel_count(); i++)
      if (!(d.kernel(i).needs & ~d.describe().features)) usable.push_back(i);
    auto wrong = loader_.verifier().wrong_kernels(d, usable, true);
    loader_.emit_not_kept();
    if (!wrong) return wrong.error();
    if (!wrong->empty())
      return Error{Code::NoBackend, format("{} of {}: {}", wrong->front().kernel, d.id(), wrong->front().why),
                   "", reason::kVerificationFailed};
    receipt.kernels += usable.size();
  }
  return Done{};
}

Result<Reloaded> Engine::reload_backend(const std::string& plugin) {
  Reloaded receipt;
  auto done = registry_.reload(plugin, [&](const LibraryPtr& code, const BackendReport& found) {
    return verify_code(code, found, receipt);
  });
  if (!done) {
    Error e = done.error();
    e.message = format("'{}' was rejected, and nothing is replaced: {}", plugin, e.message);
    return e;
  }
  receipt.backend = done->now->name();
  receipt.before = {done->before.path, done->build_before};
  receipt.now = {plugin, done->now->build_id()};
  receipt.draining = done->draining;
  record_.forget(receipt.backend);  // the failures belong to the old code
  return receipt;
}

}  // namespace gimbal
