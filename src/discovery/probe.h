// Safe device probing: a driver may crash, hang or end the process. Each backend is therefore probed in its
// own child process, which sends back a report. Only backends that survive are opened in this process.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/library.h"
#include "discovery/report.h"

namespace gimbal {

struct ProbeTask {
  std::string backend;
  std::function<Result<LibraryPtr>()> open;  // called in the child; takes no lock but LoaderLock
  std::string options;                       // for the backend's open(), see abi.h
};

struct ProbeSettings {
  std::chrono::milliseconds limit{10000};  // per child; all run at once
  void (*before_exit)() = nullptr;         // called in a child after it sent its report; for coverage
};

// Probes a backend in this process. `options`: as for open(); if they name a driver library, a backend
// without devices is opened with it. `loaded`, if given, gets the libraries mapped while a device is open:
// some are unmapped afterwards. `before`, if given: the libraries that were mapped before this backend was
// opened; then 256 bytes are sent to each device and back, and a device that does not return them is refused.
// But if no library came with the backend, this process may be a copy of one in which the driver runs; the
// copy lacks the driver's threads, and the device is not tried.
BackendReport examine(const LibraryPtr&, const std::string& options = "",
                      std::vector<std::string>* loaded = nullptr,
                      const std::vector<std::string>* before = nullptr);

// Reports of finished children in the order of the tasks; nullopt if still running.
using ProbeAnswers = std::vector<std::optional<BackendReport>>;

// Probes all backends at once, each in a child process. A crash gives the reason probe-crashed, silence
// probe-timeout, an invalid report broken-plugin. `enough`, if given, is called after each report: once it
// returns true, the other children are killed and have no report. Thread-safe; executes no other program;
// leaves no child process.
ProbeAnswers probe(const std::vector<ProbeTask>&, const ProbeSettings&,
                   const std::function<bool(const ProbeAnswers&)>& enough = {});

}  // namespace gimbal
