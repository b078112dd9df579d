#include "discovery/registry.h"

#include <algorithm>

#include "base/format.h"
#include "device/contract.h"
#include "device/reason.h"

namespace gimbal {
namespace {

BackendReport unavailable(const std::string& backend, const Backends::Source& source, const Error& e) {
  BackendReport r;
  r.backend = backend, r.present = source.present, r.library = source.path;
  r.reason = *e.reason ? e.reason : reason::kOpenFailed, r.message = e.message, r.remedy = e.remedy;
  return r;
}

// Options are meant for one backend; others would not understand them.
std::string options_for(const std::string& backend, const DeviceRequest& r) {
  const bool meant = backend == r.backend || (backend == kHostBackend && r.backend == "auto");
  return (meant ? r.options : "") + (backend == kHostBackend ? r.host_options : "");
}

// A discrete GPU of the first backend that could have one: no other
// backend can change the choice.
bool decided(const std::vector<BackendReport>& first, const SelectionRequest& request) {
  auto choice = request.device ? Result<DeviceChoice>(Error{}) : choose_device(first, request);
  if (!choice) return false;
  for (const BackendReport& r : first)
    for (const DeviceReport& d : r.devices)
      if (d.id == choice->id()) return !d.unified_memory && !d.software;
  return false;
}

// The request does not concern cached negative results, so they can only serve as reasons.
bool plainly_automatic(const DeviceRequest& r) {
  return r.backend == "auto" && !r.index && !r.strict && !r.allow_software && !r.refresh;
}

SelectionRequest selection(const DeviceRequest& r) {
  return {r.backend, r.index, r.strict, r.allow_software, r.bytes, r.order, {}};
}

// The groups in which backends are probed: each only if the previous one offers nothing.
std::vector<std::vector<std::string>> stages(const DeviceRequest& request) {
  std::vector<std::vector<std::string>> all;
  if (request.backend != "auto") all.push_back({request.backend});
  if (request.backend != "auto" && request.strict) return all;
  all.emplace_back();
  for (const std::string& name : full_order(request.order)) {
    if (name == request.backend) continue;
    if (name == kHostBackend) all.push_back({name}), all.emplace_back();
    else all.back().push_back(name);
  }
  std::erase_if(all, [](const auto& stage) { return stage.empty(); });
  return all;
}

const DeviceReport* find(const std::vector<BackendReport>& reports, const std::string& id) {
  for (const BackendReport& r : reports)
    for (const DeviceReport& d : r.devices)
      if (d.id == id) return &d;
  return nullptr;
}

}  // namespace

std::string OpenedDevice::reason(std::string (*sentence)(const Rejection&)) const {
  const std::string others = in_one_line(rejected, sentence);
  return others.empty() ? why : format("{} ({})", why, others);
}

Registry::Registry(BackendPlaces places, LinkedBackends linked)
    : places_(std::move(places)),
      backends_(places_.folders, linked),
      remembered_(places_.cache_file),
      answers_(places_.answers_file) {}

// Reports that need no child process: of absent backends, the host, backends already running here, earlier
// failures, and valid cached negative results.
std::optional<BackendReport> Registry::known(const std::string& name, const DeviceRequest& request,
                                             bool anew) {
  const Backends::Source source = backends_.source(name);
  const bool here = name == kHostBackend || [&] {
    const std::lock_guard lock(mutex_);
    return running_.count(name) > 0;
  }();
  if (here || !source.present) {
    auto library = backends_.library(name);
    return library ? examine(*library, options_for(name, request))
                   : unavailable(name, source, library.error());
  }
  if (anew) return std::nullopt;
  auto failed = remembered_.find(name, key(source));
  if (failed || !plainly_automatic(request)) return failed;
  return answers_.find(name, key(source));
}

std::string Registry::key(const Backends::Source& source) {
  auto library = source.linked ? backends_.library(source.name) : Result<LibraryPtr>(Error{});
  return library_key(source.path, library ? (*library)->build_id() : "");
}

ProbeTask Registry::task(const std::string& name, const DeviceRequest& request) {
  const Backends::Source source = backends_.source(name);
  if (source.linked)
    return {name, [library = backends_.library(name)] { return library; }, options_for(name, request)};
  auto open = [source]() -> Result<LibraryPtr> {
    auto library = Library::open(source.path);
    if (library)
      if (auto named = check_name(**library, source.name); !named) return named.error();
    return library;
  };
  return {name, open, options_for(name, request)};
}

// `names` in order of preference. Unless `anew`, reports may be missing
// from the result: see decided().
std::vector<BackendReport> Registry::ask(const std::vector<std::string>& names, const DeviceRequest& request,
                                         bool anew) {
  ProbeAnswers answers;
  std::vector<ProbeTask> tasks;
  std::vector<size_t> places;  // of the tasks in `answers`
  for (const std::string& name : names) {
    answers.push_back(known(name, request, anew));
    if (!answers.back()) tasks.push_back(task(name, request)), places.push_back(answers.size() - 1);
  }
  const SelectionRequest wanted = selection(request);
  auto enough = [&](const ProbeAnswers& so_far) {
    std::vector<BackendReport> first;
    for (size_t i = 0, k = 0; i < answers.size(); i++) {
      const auto& answer = k < places.size() && places[k] == i ? so_far[k++] : answers[i];
      if (!answer) break;
      first.push_back(*answer);
    }
    return !anew && decided(first, wanted);
  };
  const int64_t began = nanoseconds_now();
  ProbeAnswers probed = probe(tasks, places_.probe, enough);
  std::vector<BackendReport> all;
  for (size_t i = 0, k = 0; i < answers.size(); i++) {
    const bool asked = k < places.size() && places[k] == i;
    auto& answer = asked ? probed[k++] : answers[i];
    if (!answer) continue;
    const Backends::Source source = backends_.source(names[i]);
    answer->library = source.path;
    if (asked) remembered_.learn(*answer, key(source));
    // A result with options is not representative.
    if (asked && options_for(names[i], request).empty()) answers_.learn(*answer, key(source), began);
    all.push_back(std::move(*answer));
  }
  return all;
}

std::vector<BackendReport> Registry::discover() {
  auto all = ask(backends_.names(), {}, true);
  mark_duplicates(all, full_order({}));
  return all;
}

Result<std::unique_ptr<Device>> Registry::open_chosen(const DeviceChoice& choice,
                                                      const DeviceRequest& request) {
  auto library = backends_.library(choice.backend);
  if (!library) return library.error();
  {
    const std::lock_guard lock(mutex_);
    running_.insert(choice.backend);
  }
  return Device::open(*library, choice.index, options_for(choice.backend, request));
}

Result<Backends::Exchange> Registry::reload(
    const std::string& path, const std::function<Status(const LibraryPtr&, const BackendReport&)>& verify) {
  return backends_.reload(path, [&](const LibraryPtr& code) -> Status {
    // The child is a copy of a process in which this driver may already run, and many drivers fail in such a
    // copy. If it got that far without a crash, it is safe to probe it in this process.
    const ProbeTask task{code->name(), [&] { return Result<LibraryPtr>(code); }, ""};
    BackendReport r = *probe({task}, places_.probe)[0];
    if (r.reason == reason::kOpenFailed || r.reason == reason::kNoDevice) r = examine(code);
    if (!r.available) return Rejection{r.backend, r.reason, r.message, r.remedy}.error();
    if (auto ok = verify(code, r); !ok) return ok;
    const std::lock_guard lock(mutex_);
    running_.insert(code->name());
    return Done{};
  });
}

Result<OpenedDevice> Registry::open(const DeviceRequest& request, std::vector<Unusable>& unusable) {
  const std::vector<std::string> names = backends_.names();
  if (request.backend != "auto" && std::find(names.begin(), names.end(), request.backend) == names.end())
    return Error{Code::Usage, format("unknown backend '{}'", request.backend),
                 format("choose one of: auto, {}", fmt::join(names, ", "))};

  SelectionRequest wanted = selection(request);
  for (const Unusable& u : unusable)
    if (u.kernel.empty()) wanted.failed.push_back(rejection(u));
  std::vector<BackendReport> reports;
  std::vector<std::string> to_ask;  // to probe up to this stage
  Result<DeviceChoice> choice = Error{};
  auto all = stages(request);
  for (size_t stage = 0; stage < all.size();) {
    to_ask.insert(to_ask.end(), all[stage].begin(), all[stage].end());
    all[stage].clear();
    for (BackendReport& r : ask(to_ask, request, false)) {
      std::erase(to_ask, r.backend);
      reports.push_back(std::move(r));
    }
    if (auto wrong = wrong_number(reports, wanted)) return *wrong;
    choice = choose_device(reports, wanted);
    // Devices that emulate a GPU come after all backends not probed yet.
    const bool early = choice && find(reports, choice->id())->software &&
                       choice->backend != request.backend && stage + 1 < all.size();
    if (!choice || early) {
      stage += to_ask.empty();
      continue;
    }
    auto device = open_chosen(*choice, request);
    if (device) return OpenedDevice{std::move(*device), choice->why, choice->unwanted, choice->rejected};
    // The host has no replacement: the request itself is wrong.
    if (choice->backend == kHostBackend) return device.error();
    unusable.push_back({choice->id(), "", device.error()});
    if (!*device.error().reason) unusable.back().why.reason = reason::kOpenFailed;
    wanted.failed.push_back(rejection(unusable.back()));
  }
  // Before giving up, ignore the cache and probe all backends.
  if (std::any_of(reports.begin(), reports.end(), [](const BackendReport& r) { return !r.seen.empty(); })) {
    DeviceRequest again = request;
    again.refresh = true;
    return open(again, unusable);
  }
  return choice.error();
}

// ---- one for the program

namespace {

struct Shared {
  std::mutex mutex;
  BackendPlaces places;
  std::unique_ptr<Registry> registry;
};
Shared& shared() {
  static Shared s;
  return s;
}

}  // namespace

void use_backends(BackendPlaces places) {
  const std::lock_guard lock(shared().mutex);
  shared().places = std::move(places);
  shared().registry.reset();
}

Registry& backend_registry() {
  const std::lock_guard lock(shared().mutex);
  if (!shared().registry) shared().registry = std::make_unique<Registry>(shared().places);
  return *shared().registry;
}

std::vector<std::string> backend_names() { return backend_registry().backends().names(); }
std::vector<BackendReport> discover_backends() { return backend_registry().discover(); }
Result<OpenedDevice> open_device(const DeviceRequest& request) { return backend_registry().open(request); }

}  // namespace gimbal
