// What is known of the devices that models may be loaded on: what is not used of them and why, what was
// measured, and what users have been told.
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
  // False for a `sentence` that was here before.
  bool is_news(const std::string& sentence);
  // Fallbacks of plans, which are made again and again: tells each once.
  void tell_once(const Fallback&);

  // Looks up the measurements of a device when it is opened first.
  void opened(const Device&);
  // One more thing that is not used. Errors: NoBackend under strict.
  Status give_up(Unusable, Fallback::Kind);
  // A device was lost while it computed: no fallback, for the recovery is told.
  void lost(const std::string& device);
  // The code of a backend was exchanged: what was found of its devices counts no more.
  void forget(const std::string& backend);

  bool is_unusable(const std::string& device, const std::string& kernel) const;
  bool lost_kernels(const std::string& device) const;  // some kernel of it is not used
  // EngineOptions::run without the kernels that are not used, and with what was measured.
  RunOptions run_options() const;

  std::vector<Unusable> unusable;
  std::vector<MeasuredProduct> measured;  // of the devices that were opened, and kept for the next start
  std::vector<Fallback> fallbacks;        // that come with `unusable`

 private:
  const EngineOptions& options_;
  const EventSink events_;
  std::vector<std::string> looked_up_;  // devices whose measurements are in `measured`
  std::vector<std::string> told_;
};

// Settings of the CPU, for its open(): device/abi.h.
std::string host_options(const EngineOptions&);

}  // namespace gimbal
