// What an application asks for: which backends and devices there are, and one of them opened by the user's
// words. The parts behind it: backends.h (code), probe.h (looking without risk), selection.h (the choice).
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
  std::optional<int> index = {};  // of its devices; nothing: the best one
  bool strict = false;            // refuse instead of falling back
  std::string options = {};  // for the open() of the one that was asked for (auto: of the host), see abi.h
  std::string host_options = {};  // for the host's open(), also where it takes another one's place
  // Devices that emulate a GPU, where their backend was asked for by name; otherwise they come behind the
  // CPU.
  bool allow_software = true;
  uint64_t bytes = 0;                   // that must be free; 0: not known
  std::vector<std::string> order = {};  // of automatic choice; those that are missing come behind, as usual
  // Asks also where the same answer as last time is to be expected (remembered_answers.h), which plain
  // automatic choice believes: no name, no number, not strict, no software devices.
  bool look_again = false;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::string why;  // this one: "asked for"
  std::vector<Rejection>
      fallbacks;                    // what was asked for and could not be had; each must be shown to the user
  std::vector<Rejection> rejected;  // all that would have come before it
  // `why`, and in brackets why not those before it, each worded by `sentence`; those that are not part of
  // this build by their names alone.
  std::string reason(std::string (*sentence)(const Rejection&)) const;
  std::string reason() const {
    return reason([](const Rejection& r) { return r.sentence(); });
  }
};

// The host itself: no driver that could crash, always there, and what every other device is compared with.
inline constexpr char kHostBackend[] = "cpu";
inline bool is_host(const Device& d) { return std::string_view(d.backend()) == kHostBackend; }

// Where an application has its backends.
struct BackendPlaces {
  std::vector<std::string> folders;  // with plugins; the first one wins
  std::string cache_file;    // for drivers that crashed or hung; empty: remembered by this process alone
  std::string answers_file;  // for what need not be asked again (remembered_answers.h); likewise
  ProbeSettings probe;
};

// Thread-safe.
class Registry {
 public:
  explicit Registry(BackendPlaces, LinkedBackends = linked_backends());

  Backends& backends() { return backends_; }
  // Every known backend with its devices, or the reason why it has none, in the order of automatic choice.
  // Asks all of them, also those that failed before.
  std::vector<BackendReport> discover();
  // See open_device(). Asks no backend that cannot come into question: asked for by name and usable, nothing
  // else is opened or looked at. Devices in `unusable` are not taken; those that do not open are added to it.
  Result<OpenedDevice> open(const DeviceRequest&, std::vector<Unusable>& unusable);
  Result<OpenedDevice> open(const DeviceRequest& request) {
    std::vector<Unusable> none;
    return open(request, none);
  }
  // Exchanges a backend for the plugin in `path` (Backends::reload), once a child process has asked it for
  // its devices and `verify` is content with them: a plugin that crashes there is refused like any other.
  // Errors: those of Library::open; NoBackend with the reason of the probe; those of `verify`.
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
      running_;  // opened in this process already: asked here, for drivers do not like forks
};

// ---- the same for programs that have one registry

// Says where the backends are, before anything below is used; without it there are the linked ones.
void use_backends(BackendPlaces);
Registry& backend_registry();

// What can be asked for by name: kBackendOrder, and behind it what this program has besides: backends for
// tests, such as the emulator of GPUs, which are never chosen by themselves.
std::vector<std::string> backend_names();
std::vector<BackendReport> discover_backends();

// Opens the device asked for, or the best there is. What cannot be had (no such backend, no device, a driver
// that crashes or refuses, too little memory) is replaced by the next best, with the reason;
// or, if strict, refused with it. Errors: NoBackend with every reason; OutOfMemory when only memory is
// missing; Usage for an unknown name.
Result<OpenedDevice> open_device(const DeviceRequest&);

}  // namespace gimbal
