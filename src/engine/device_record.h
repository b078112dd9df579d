// The engine's record of the devices that models may run on: unusable devices and kernels with the reasons,
// measurements, and the notices already given to users.
#pragma once
#include <string>
#include <vector>

#include "engine/events.h"
#include "engine/options.h"

namespace gimbal {

// Not thread-safe.
class DeviceRecord {
 public:
  // `options` outlive it; `events` may be empty.
  DeviceRecord(const EngineOptions& options, EventSink events)
      : options_(options), events_(std::move(events)) {}
  DeviceRecord(const DeviceRecord&) = delete;

  bool emit(const Event& e) const { return !events_ || events_(e); }
  // False if `sentence` was passed before.
  bool is_news(const std::string& sentence);
  // Plans are made repeatedly; this emits each of their fallbacks once.
  void emit_once(const Fallback&);

  // Loads the kept measurements of a device when it is first opened.
  void opened(const Device&);
  // Records an unusable device or kernel, and emits a fallback. Errors: NoBackend under strict.
  Status give_up(Unusable, Fallback::Kind);
  // A device was lost while it computed. Emits no fallback, because the recovery has its own event.
  void lost(const std::string& device);
  // The code of a backend was replaced: discards the findings about its devices.
  void forget(const std::string& backend);

  bool is_unusable(const std::string& device, const std::string& kernel) const;
  bool lost_kernels(const std::string& device) const;  // it has an unusable kernel
  // EngineOptions::run without the unusable kernels, and with the measurements.
  RunOptions run_options() const;

  std::vector<Unusable> unusable;
  std::vector<MeasuredProduct> measured;  // of the opened devices; also in the cache folder
  std::vector<Fallback> fallbacks;        // caused by `unusable`

 private:
  const EngineOptions& options_;
  const EventSink events_;
  std::vector<std::string> looked_up_;  // devices whose measurements are in `measured`
  std::vector<std::string> told_;
};

// Settings of the CPU, for its open(): device/abi.h.
std::string host_options(const EngineOptions&);

}  // namespace gimbal
