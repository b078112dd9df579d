#include "apps/options.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "apps/shared/terminal.h"
#include "discovery/registry.h"
#include "ops/shapes.h"

namespace gimbal {
namespace {

// --cuda-device N means: the CUDA backend, device N.
Status named_devices(const CommonOptions& o, EngineOptions& to) {
  const std::vector<std::string> names = backend_names();
  for (size_t i = 0; i < std::min(names.size(), o.named_device.size()); i++) {
    if (!o.named_device[i]) continue;
    const std::string& name = names[i];
    const std::string option = format("--{}-device", name);
    if (to.backend != "auto" && to.backend != name)
      return Error{Code::Usage, format("{} contradicts --backend {}", option, to.backend),
                   "give only one of them"};
    if (o.device)
      return Error{Code::Usage, format("{} and --device say the same thing", option),
                   "give only one of them"};
    to.backend = name;
    to.device = *o.named_device[i];
  }
  return Done{};
}

// "cuda:0=20,cpu=rest".
Result<std::vector<LayerShare>> parse_split(const std::string& text) {
  auto wrong = [&](std::string_view part) {
    return Error{Code::Usage,
                 format("--split: '{}' is not a device and its number of layers", printable(part)),
                 "write DEVICE=LAYERS with commas between, such as cpu=4,cuda:0=rest"};
  };
  std::vector<LayerShare> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = std::min(part.find('='), part.size());
    auto device = DeviceLocation::parse(part.substr(0, equals));
    if (!device || equals == part.size()) return wrong(part);
    LayerShare s{std::move(*device)};
    if (const std::string_view layers = std::string_view(part).substr(equals + 1); layers != "rest") {
      const auto [stop, error] = std::from_chars(layers.data(), layers.data() + layers.size(), s.layers);
      if (error != std::errc() || stop != layers.data() + layers.size() || s.layers < 0) return wrong(part);
    }
    all.push_back(std::move(s));
  }
  return all;
}

// Kernels keep tiles on the stack, and a thread has the stack that `ulimit -s` says.
Status check_stack() {
  constexpr uint64_t kMinStackBytes = 256 << 10;
  if (rlimit stack{}; getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kMinStackBytes)
    return Error{Code::OutOfMemory,
                 format("the stack of this process is limited to {} KiB; computing needs {}",
                        stack.rlim_cur >> 10, kMinStackBytes >> 10),
                 "raise the limit: ulimit -s 1024"};
  return Done{};
}

}  // namespace

void declare_choice(Arguments& a, bool& allow_software_devices, std::optional<std::string>& order) {
  a.flag("--allow-software-devices",
         "allow software devices (a GPU emulated on the CPU); the CPU still comes first",
         allow_software_devices);
  a.text("--backend-order", "LIST",
         "backends that automatic choice tries first: vulkan,cuda; the others follow", order);
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

void declare_kernel_config(Arguments& a, std::optional<std::string>& choice) {
  a.text("--kernel-config", "FILE",
         "how the weights of a BitNet file in tl1, tl2 or i2_s lie: a kernel_config.ini, default, preset, "
         "i2_s-64 or i2_s-4x1",
         choice);
}

void declare(Arguments& a, CommonOptions& o, Needs needs) {
  a.section("Device and kernels");
  const std::vector<std::string> names = backend_names();
  std::vector<std::string> backends = names;
  backends.insert(backends.begin(), "auto");
  a.one_of("--backend,--gpu-backend",
           "backend to use; if it is not available, the next best is used, with a note", o.backend, backends);
  a.whole("--device", "N", "device of the backend, from 0 (default: the best; `gimbal backends` lists them)",
          o.device, 0, 1023);
  o.named_device.resize(names.size());
  for (size_t i = 0; i < names.size(); i++)
    a.family_whole(format("--{}-device", names[i]), "N",
                   format("the same as --backend {} --device N", names[i]), o.named_device[i], 0, 1023);
  a.remark("--cuda-device N ...", "the same as --backend cuda --device N; for every backend");
  a.whole("--gpu-layers", "N",
          "layers on the GPU, from the last one on; -1: as many as fit (default); 0: none", o.gpu_layers, -1,
          100000);
  if (needs == Needs::Model)
    a.text("--split", "LIST", "layers by device, in order: cpu=4,cuda:0=20,cuda:1=rest", o.split);
  a.flag("--strict", "fail instead of any fallback (device, layer or kernel)", o.strict);
  a.texts("--prefer-kernel", "PATTERN",
          "kernels to prefer, such as 'cpu.avx2.*'; repeatable, most wanted first", o.prefer_kernel);
  declare_choice(a, o.allow_software_devices, o.backend_order);
  a.one_of(
      "--numerics",
      "exact (default): the same bits with any thread count and batch size; fast: allow kernels that differ",
      o.numerics, {"exact", "fast"});
  a.whole("-t,--threads", "N", "CPU threads (default: one per physical core)", o.threads, 1, 1024);
  a.text("--cpu-variant", "NAME", "force an instruction set: baseline, avx2, avx512, avx512vnni",
         o.cpu_variant);
  if (needs == Needs::Device) return;
  a.whole("--ctx", "N", "context length in tokens (default: the model's own, at most 4096)", o.context, 1,
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
  a.one_of("--packed",
           "weights that `gimbal pack` laid out: auto (default): used where there are any; on: without them "
           "there is a "
           "note, and with --strict an error; off",
           o.packed, {"auto", "on", "off"});
  declare_kernel_config(a, o.kernel_config);
  a.texts("--lora", "FILE[:SCALE]",
          "a LoRA adapter (GGUF) for the model, and how strongly it acts (default 1); repeat for several",
          o.lora);
  a.one_of("--kv-type", format("format of the KV cache (default {})", o.kv_type).c_str(), o.kv_type,
           cache_types);
}

ModelFileOptions file_options(const CommonOptions& o) {
  ModelFileOptions f;
  f.kernel_config = o.kernel_config.value_or("");
  for (const std::string& text : o.lora) {
    Lora l{text, 1};
    // A name may have a colon of its own: only a number behind it is a scale.
    if (const size_t colon = text.rfind(':'); colon != text.npos) {
      const char* end = text.data() + text.size();
      float scale = 0;
      const auto [stop, wrong] = std::from_chars(text.data() + colon + 1, end, scale);
      if (wrong == std::errc() && stop == end) l = {text.substr(0, colon), scale};
    }
    f.lora.push_back(std::move(l));
  }
  return f;
}

Result<EngineOptions> engine_options(const CommonOptions& o) {
  if (auto ok = check_stack(); !ok) return ok.error();
  EngineOptions e;
  e.backend = o.backend, e.device = o.device, e.gpu_layers = o.gpu_layers;
  auto order = backend_order(o.backend_order);
  if (!order) return order.error();
  e.backend_order = std::move(*order);
  if (auto ok = named_devices(o, e); !ok) return ok.error();
  if (o.split) {
    auto split = parse_split(*o.split);
    if (!split) return split.error();
    e.split = std::move(*split);
  }
  e.strict = o.strict, e.allow_software_devices = o.allow_software_devices;
  e.threads = o.threads, e.cpu_variant = o.cpu_variant;
  e.limit_megabytes = o.limit_megabytes;
  e.verify = o.verify == "never" ? Verify::Never : o.verify == "always" ? Verify::Always : Verify::Auto;
  e.packed = o.packed == "off" ? Packed::Off : o.packed == "on" ? Packed::On : Packed::Auto;
  if (o.context) e.run.context = *o.context;
  if (o.batch) e.run.batch = *o.batch;
  e.run.cache_type = *dtype_named(o.kv_type);
  e.run.kernels = {o.prefer_kernel, o.numerics == "fast", o.strict};
  return e;
}

}  // namespace gimbal
