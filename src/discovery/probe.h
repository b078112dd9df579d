// Looking for devices without the risk: a driver may crash, hang or end the process. So each backend is asked
// in a child process of its own, and sends back a report. Only what survived is then opened in this process.
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
  std::chrono::milliseconds limit{10000};  // for each child, all of which run at once
  void (*before_exit)() = nullptr;  // called in a child that has sent its report; for measuring coverage
};

// Asks a backend in this process. `options` as for open(); where they name a driver's library, one that has
// no device without it is opened with it.
// `loaded`, when given, gets the libraries that are there while a device is open: some are gone with it.
BackendReport examine(const LibraryPtr&, const std::string& options = "",
                      std::vector<std::string>* loaded = nullptr);

// Answers of finished children, in the order of the tasks; nothing where one still runs.
using ProbeAnswers = std::vector<std::optional<BackendReport>>;

// Asks all backends at once, each in a child process. A crash is the code probe-crashed, silence
// probe-timeout, anything that is no report broken-plugin. `enough`, when given, is asked after each answer:
// once it says yes, the other children are ended and have no answer. Thread-safe; starts no program; leaves
// no child behind.
ProbeAnswers probe(const std::vector<ProbeTask>&, const ProbeSettings&,
                   const std::function<bool(const ProbeAnswers&)>& enough = {});

}  // namespace gimbal
