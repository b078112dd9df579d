// The entry point for applications: lists backends and devices, and opens one by the user's request. Built
// from backends.h (code), probe.h (probing in child processes) and selection.h (the choice).
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/backends.h"
#include "device/device.h"
#include "discovery/probe.h"
#include "discovery/remembered.h"
#include "discovery/remembered_answers.h"
#include "discovery/report.h"
#include "discovery/selection.h"

namespace gimbal {

struct DeviceRequest {
  std::string backend = "auto";   // or one of backend_names()
  std::optional<int> index = {};  // of its devices; nullopt: the best one
  bool strict = false;            // refuse instead of falling back
  std::string options = {};  // options for open() of the requested backend (auto: of the host), see abi.h
  std::string host_options = {};  // options for the host's open(), also if it is the fallback
  // Allow devices that emulate a GPU if their backend was requested by name; otherwise they come after the
  // CPU.
  bool allow_software = true;
  uint64_t bytes = 0;                   // minimum free memory; 0: unknown
  std::vector<std::string> order = {};  // of automatic choice; missing backends follow in the usual order
  // Ignore the cached negative results (remembered_answers.h). Only plain automatic selection uses them: no
  // name, no index, not strict, no software devices.
  bool refresh = false;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::string why;  // reason for this device: "asked for"
  // Requested but unavailable; each must be shown to the user.
  std::vector<Rejection> fallbacks;
  std::vector<Rejection> rejected;  // all that precede the chosen one
  // `why`, followed in parentheses by the reasons against the preceding ones, each formatted by `sentence`;
  // backends not in this build are only named.
  std::string reason(std::string (*sentence)(const Rejection&)) const;
  std::string reason() const {
    return reason([](const Rejection& r) { return r.sentence(); });
  }
};

// The host has no driver that could crash, is always available, and is the reference for all devices.
inline constexpr char kHostBackend[] = "cpu";
inline bool is_host(const Device& d) { return std::string_view(d.backend()) == kHostBackend; }

// Locations of an application's backends.
struct BackendPlaces {
  std::vector<std::string> folders;  // plugin folders; the first match wins
  std::string cache_file;            // for drivers that crashed or hung; empty: in memory only
  std::string answers_file;          // for cached negative results (remembered_answers.h); likewise
  ProbeSettings probe;
};

// Thread-safe.
class Registry {
 public:
  explicit Registry(BackendPlaces, LinkedBackends = linked_backends());

  Backends& backends() { return backends_; }
  // Every known backend with its devices, or the reason why it has none, in the order of automatic choice.
  // Probes all of them, including earlier failures.
  std::vector<BackendReport> discover();
  // See open_device(). Probes only backends that can matter: if the requested one works, no other is opened.
  // Devices in `unusable` are skipped; devices that fail to open are added to it.
  Result<OpenedDevice> open(const DeviceRequest&, std::vector<Unusable>& unusable);
  Result<OpenedDevice> open(const DeviceRequest& request) {
    std::vector<Unusable> none;
    return open(request, none);
  }
  // Replaces a backend by the plugin in `path` (Backends::reload) after a probe in a child process succeeded
  // and `verify` accepted its devices: a plugin that crashes there is rejected. Errors: those of
  // Library::open; NoBackend with the reason of the probe; those of `verify`.
  Result<Backends::Exchange> reload(
      const std::string& path, const std::function<Status(const LibraryPtr&, const BackendReport&)>& verify);

 private:
  std::optional<BackendReport> known(const std::string& name, const DeviceRequest&, bool anew);
  std::string key(const Backends::Source&);  // see library_key()
  ProbeTask task(const std::string& name, const DeviceRequest&);
  std::vector<BackendReport> ask(const std::vector<std::string>& names, const DeviceRequest&, bool anew);
  Result<std::unique_ptr<Device>> open_chosen(const DeviceChoice&, const DeviceRequest&);

  BackendPlaces places_;
  Backends backends_;
  RememberedFailures remembered_;
  RememberedAnswers answers_;
  std::mutex mutex_;
  std::set<std::string>
      running_;  // already open in this process: probed here, because drivers do not support fork
};

// ---- the same for programs with a single registry

// Sets the locations of backends; call it before the functions below. Without it, only linked backends exist.
void use_backends(BackendPlaces);
Registry& backend_registry();

// Names accepted in requests: kBackendOrder, then this program's additional backends (for tests, such as the
// GPU emulator), which are never chosen automatically.
std::vector<std::string> backend_names();
std::vector<BackendReport> discover_backends();

// Opens the requested device, or the best one. An unavailable device (unknown backend, no device, a driver
// that crashes or refuses, too little memory) is replaced by the next best, with the reason; under `strict`
// it is an error. Errors: NoBackend with every reason; OutOfMemory if only memory is missing; Usage for an
// unknown name.
Result<OpenedDevice> open_device(const DeviceRequest&);

}  // namespace gimbal
