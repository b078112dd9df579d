#include "apps/options.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "apps/kernel_names.h"
#include "apps/terminal.h"
#include "ops/shapes.h"

namespace gimbal {
namespace {

bool has_gpu_backend() {
  for (const std::string& name : backend_names())
    if (name != "cpu" && backend_registry().backends().source(name).present) return true;
  return false;
}

// --cuda-device N means: the CUDA backend, device N.
Result<DeviceRequest> device_request(const EngineOptions& o) {
  DeviceRequest r;
  r.backend = o.backend;
  r.index = o.device;
  r.strict = o.strict;
  r.allow_software = o.allow_software_devices;
  r.look_again = o.look_again;
  auto order = backend_order(o.backend_order);
  if (!order) return order.error();
  r.order = std::move(*order);
  const std::vector<std::string> names = backend_names();
  for (size_t i = 0; i < std::min(names.size(), o.named_device.size()); i++) {
    if (!o.named_device[i]) continue;
    const std::string& name = names[i];
    const std::string option = format("--{}-device", name);
    if (r.backend != "auto" && r.backend != name)
      return Error{Code::Usage, format("{} contradicts --backend {}", option, r.backend),
                   "give only one of them"};
    if (o.device)
      return Error{Code::Usage, format("{} and --device say the same thing", option),
                   "give only one of them"};
    r.backend = name;
    r.index = *o.named_device[i];
  }
  if (!o.refused.empty())
    r.verify = [refused = o.refused](const Device& d) -> Status {
      for (const auto& [id, why] : refused)
        if (id == d.id()) return why;
      return Done{};
    };
  if (o.threads) r.host_options += format("threads={}\n", *o.threads);
  if (o.cpu_variant) r.host_options += format("variant={}\n", *o.cpu_variant);
  return r;
}

// One line at the usual loudness: which GPU was found, or why none of those at hand is used. Nothing where
// there is nothing to choose from.
void tell_choice(const EngineOptions& o, const OpenedDevice& d) {
  if (o.backend != "auto" || !d.fallbacks.empty()) return;
  const std::string backend = d.device->backend();
  if (backend != "cpu") {
    const char* name = d.device->describe().name;
    note(format("{0} GPU detected, using {0} backend: {1}, {2}", display_name(backend), d.device->id(),
                printable(name ? name : "")));
    return;
  }
  std::string why;
  for (const Rejection& r : d.rejected)
    if (backend_registry().backends().source(r.backend()).present) why += "\n  " + printable(r.sentence());
  if (!why.empty()) note("No GPU acceleration available, using CPU backend" + why);
}

// A misspelt variant is bad usage; one that this CPU cannot run is a device that cannot be had.
Error refused_variant(const std::string& variant, const Error& e) {
  DeviceRequest plain;
  plain.backend = "cpu";
  if (auto cpu = open_device(plain)) {
    bool known = false;
    std::string list;
    for (const Variant& v : variants_of(*cpu->device)) {
      known = known || v.name == variant;
      list += (list.empty() ? "" : ", ") + v.name;
    }
    if (!known)
      return {Code::Usage, format("there is no CPU variant '{}'", printable(variant)),
              "this build has: " + list};
  }
  return {e.code, e.message, e.remedy.empty() ? "`gimbal backends` shows what this CPU has" : e.remedy};
}

// Wishes that this device cannot fulfil: never ignored in silence.
std::vector<std::string> unfulfilled(const EngineOptions& o, const Device& d) {
  std::vector<std::string> all;
  const bool on_cpu = std::string(d.backend()) == "cpu";
  if (o.gpu_layers.value_or(0) != 0 && on_cpu)
    all.push_back(format("--gpu-layers {}: {}: all layers run on the CPU", *o.gpu_layers,
                         has_gpu_backend() ? "no GPU is used" : "no GPU backend in this build"));
  if (o.cpu_variant && !on_cpu)
    all.push_back(format("--cpu-variant {} has no effect on {}", *o.cpu_variant, d.id()));
  for (const std::string& pattern : o.prefer_kernel) {
    bool matches = false;
    for (size_t i = 0; i < d.kernel_count() && !matches; i++)
      matches = fnmatch(pattern.c_str(), d.kernel(i).name, 0) == 0;
    if (!matches)
      all.push_back(format("--prefer-kernel '{}' matches no kernel of {} (`gimbal kernels` lists them)",
                           printable(pattern), d.id()));
  }
  return all;
}

// Permissions that change nothing here.
std::vector<std::string> without_effect(const EngineOptions& o, const Device& d) {
  std::vector<std::string> all;
  if (o.allow_software_devices && !has_gpu_backend())
    all.push_back("--allow-software-devices has no effect: this build has no backend with software devices");
  bool any_fast = false;
  for (size_t i = 0; i < d.kernel_count(); i++) any_fast = any_fast || d.kernel(i).numerics == GIMBAL_FAST;
  if (o.numerics == "fast" && !any_fast)
    all.push_back(format("--numerics fast has no effect: every kernel of {} is exact", d.id()));
  return all;
}

}  // namespace

void declare_choice(Arguments& a, bool& allow_software_devices, std::optional<std::string>& order) {
  a.flag("--allow-software-devices",
         "also use devices that emulate a GPU on the CPU; the CPU itself still comes first",
         allow_software_devices);
  a.text("--backend-order", "LIST", "automatic choice tries these first: vulkan,cuda; the others follow",
         order);
}

Result<std::vector<std::string>> backend_order(const std::optional<std::string>& list) {
  std::vector<std::string> order;
  if (!list) return order;
  const std::vector<std::string> names = backend_names();
  for (size_t at = 0, end; at <= list->size(); at = end + 1) {
    end = std::min(list->find(',', at), list->size());
    order.push_back(list->substr(at, end - at));
    if (std::find(names.begin(), names.end(), order.back()) == names.end())
      return Error{Code::Usage, format("--backend-order: there is no backend '{}'", printable(order.back())),
                   format("write names with commas between; there are {}", fmt::join(names, ", "))};
  }
  return order;
}

void declare(Arguments& a, EngineOptions& o, Needs needs) {
  a.section("Where and how it runs");
  const std::vector<std::string> names = backend_names();
  std::vector<std::string> backends = names;
  backends.insert(backends.begin(), "auto");
  a.one_of("--backend,--gpu-backend",
           "the backend wanted; another one is used, with a note, where it cannot be had", o.backend,
           backends);
  a.whole("--device", "N", "which device of the backend (default: the best; `gimbal backends` lists them)",
          o.device, 0, 1023);
  o.named_device.resize(names.size());
  // Not in --help one by one: they are all alike.
  for (size_t i = 0; i < names.size(); i++)
    a.hidden_whole(format("--{}-device", names[i]), o.named_device[i], 0, 1023);
  a.remark("--cuda-device N ...", "the same as --backend cuda --device N; for every backend");
  a.whole("--gpu-layers", "N",
          "layers on the GPU, from the last one on; -1: as many as fit (default); 0: none", o.gpu_layers, -1,
          100000);
  if (needs == Needs::Model)
    a.text("--split", "LIST", "layers by device, in order: cpu=4,cuda:0=20,cuda:1=rest", o.split);
  a.flag("--strict", "an error instead of any fallback (device, layer or kernel)", o.strict);
  a.texts("--prefer-kernel", "PATTERN",
          "kernels to prefer, such as 'cpu.avx2.*'; repeatable, most wanted first", o.prefer_kernel);
  declare_choice(a, o.allow_software_devices, o.backend_order);
  a.one_of("--numerics", "exact (default): the same bits with any thread count and batch size", o.numerics,
           {"exact", "fast"});
  a.whole("-t,--threads", "N", "CPU threads (default: one per physical core)", o.threads, 1, 1024);
  a.text("--cpu-variant", "NAME", "force an instruction set: baseline, avx2, avx512, avx512vnni",
         o.cpu_variant);
  if (needs == Needs::Device) return;
  a.whole("--ctx", "N", "positions of the context (default: the model's own, at most 4096)", o.context, 1,
          1 << 24);
  a.whole("--batch", "N", "tokens of a prompt computed at once (default 256)", o.batch, 1, 65536);
  std::vector<std::string> cache_types;
  for (DType t : kAllDTypes)
    if (has(kCacheTypes, t)) cache_types.push_back(info(t).name);
  a.one_of(
      "--verify",
      "check kernels and model against references: auto (default): at the first use on a device; always; "
      "never",
      o.verify, {"auto", "always", "never"});
  a.one_of("--kv-type", "numbers in the KV cache (default f16)", o.kv_type, cache_types);
}

Result<RunOptions> run_options(const EngineOptions& o) {
  RunOptions r;
  if (o.context) r.context = *o.context;
  if (o.batch) r.batch = *o.batch;
  r.cache_type = *dtype_named(o.kv_type);
  r.kernels = {o.prefer_kernel, o.numerics == "fast", o.strict};
  return r;
}

Result<OpenedDevice> open_device(const EngineOptions& o, bool quiet) {
  auto request = device_request(o);
  if (!request) return request.error();
  auto opened = open_device(*request);
  if (!opened) return o.cpu_variant ? refused_variant(*o.cpu_variant, opened.error()) : opened.error();
  for (const std::string& f : opened->fallbacks)
    note(format("note: {}; using {} instead", f, opened->device->id()));
  for (const std::string& u : unfulfilled(o, *opened->device)) {
    if (o.strict)
      return Error{Code::NoBackend, "--strict: " + u, "leave --strict out, or the option that cannot be had"};
    note("note: " + u);
  }
  if (!quiet) tell_choice(o, *opened);
  if (!quiet)
    for (const std::string& w : without_effect(o, *opened->device)) note("note: " + w);
  return opened;
}

std::string short_reason(const OpenedDevice& d) { return d.reason.substr(0, d.reason.find(" (")); }

}  // namespace gimbal
