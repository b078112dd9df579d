#include "apps/options/options.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>

#include "apps/toolkit/terminal.h"
#include "chat/chat_template.h"
#include "discovery/registry.h"

namespace gimbal {
namespace {

// --cuda-device N means: the CUDA backend, device N.
Status named_devices(const CommonOptions& o, DeviceSettings& to) {
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
Result<std::vector<DeviceLayers>> parse_split(const std::string& text) {
  std::vector<DeviceLayers> all;
  for (const std::string& part : split(text, ',')) {
    const Error wrong{Code::Usage, format("--split: expected DEVICE=LAYERS, got '{}'", printable(part)),
                      "write such parts with commas between: cpu=4,cuda:0=rest"};
    const size_t equals = std::min(part.find('='), part.size());
    DeviceLayers s{part.substr(0, equals)};
    if (!DeviceLocation::parse(s.device) || equals == part.size()) return wrong;
    if (const std::string_view layers = std::string_view(part).substr(equals + 1); layers != "rest") {
      const auto [stop, error] = std::from_chars(layers.data(), layers.data() + layers.size(), s.layers);
      if (error != std::errc() || stop != layers.data() + layers.size() || s.layers < 0) return wrong;
    }
    all.push_back(std::move(s));
  }
  return all;
}

// Kernels keep tiles on the stack; `ulimit -s` sets the stack size of threads.
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
  constexpr const EngineSetting &allow = engine_setting("allow_software_devices"),
                                &first = engine_setting("backend_order");
  a.flag(allow.option, allow.help, allow_software_devices);
  a.text(first.option, first.value, first.help, order);
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

void declare_kernel_config(Arguments& a, std::string& choice) {
  constexpr const EngineSetting& s = engine_setting("kernel_config");
  a.text(s.option, s.value, s.help, choice);
}

void declare(Arguments& a, const EngineSetting& s, CommonOptions& o) {
  struct Declare {
    Arguments& a;
    const EngineSetting& s;
    CommonOptions& o;
    std::vector<std::string> words() const { return split(s.words, '|'); }

    void operator()(bool DeviceSettings::*m) const { a.flag(s.option, s.help, o.*m); }
    void operator()(bool ModelOptions::*m) const { a.flag(s.option, s.help, o.*m); }
    void operator()(std::string DeviceSettings::*m) const {  // backend
      std::vector<std::string> backends = backend_names();
      backends.insert(backends.begin(), "auto");
      a.one_of(s.option, s.help, o.*m, std::move(backends));
    }
    void operator()(std::optional<int> DeviceSettings::*m) const {
      a.whole(s.option, s.value, s.help, o.*m, s.low, s.high);
    }
    void operator()(std::optional<std::string> DeviceSettings::*m) const {
      a.text(s.option, s.value, s.help, o.*m);
    }
    void operator()(std::vector<std::string> DeviceSettings::*m) const {
      if (s.list) a.text(s.option, s.value, s.help, o.order_list);
      else a.texts(s.option, s.value, s.help, o.*m);
    }
    void operator()(std::vector<DeviceLayers> DeviceSettings::*) const {
      a.text(s.option, s.value, s.help, o.split_list);
    }
    void operator()(Numerics DeviceSettings::*m) const { a.choice(s.option, s.help, o.*m, words()); }
    void operator()(Verify DeviceSettings::*m) const { a.choice(s.option, s.help, o.*m, words()); }
    void operator()(Packed DeviceSettings::*m) const { a.choice(s.option, s.help, o.*m, words()); }
    void operator()(float ModelOptions::*m) const { a.number(s.option, s.value, s.help, o.*m); }
    void operator()(int ModelOptions::*m) const { a.whole(s.option, s.value, s.help, o.*m, s.low, s.high); }
    void operator()(std::string ModelOptions::*m) const {
      if (!s.words) return a.text(s.option, s.value, s.help, o.*m);
      a.one_of(s.option, format("{} (default {})", s.help, o.*m).c_str(), o.*m, words());
    }
    void operator()(std::vector<LoraAdapter> ModelOptions::*) const {
      a.texts(s.option, s.value, s.help, o.lora_texts);
    }
  };
  std::visit(Declare{a, s, o}, s.member);
}

// --backend with one more name, and --library.
static void declare_library(Arguments& a, const EngineSetting& s, CommonOptions& o) {
  std::vector<std::string> names = backend_names();
  names.insert(names.begin(), "auto");
  names.push_back(kLibraryBackend);
  a.one_of(s.option, s.help, o.backend, std::move(names));
  a.text("--library", "PATH",
         "run the model in this libllama in place of gimbal's engine; --backend llama.cpp: in the one that "
         "`gimbal find-libraries` finds",
         o.library);
}

void declare(Arguments& a, CommonOptions& o, Needs needs) {
  a.section("Device and kernels");
  for (const EngineSetting& s : kEngineSettings) {
    if (!s.option || (s.of_model && needs == Needs::Device)) continue;
    if (&s == &engine_setting("chat_template")) a.section("In place of the file's settings");
    if (needs == Needs::Texts && &s == &engine_setting("backend")) declare_library(a, s, o);
    else declare(a, s, o);
    if (&s != &engine_setting("device")) continue;
    const std::vector<std::string> names = backend_names();
    o.named_device.resize(names.size());
    for (size_t i = 0; i < names.size(); i++)
      a.family_whole(format("--{}-device", names[i]), "N",
                     format("the same as --backend {} --device N", names[i]), o.named_device[i], s.low,
                     s.high);
    a.remark("--cuda-device N ...", "the same as --backend cuda --device N; for every backend");
  }
}

ModelOptions model_options(const CommonOptions& o) {
  ModelOptions m = o;
  for (const std::string& text : o.lora_texts) {
    LoraAdapter l{text};
    // A file name may contain a colon: only a number after it is a scale.
    if (const size_t colon = text.rfind(':'); colon != text.npos) {
      const char* end = text.data() + text.size();
      float scale = 0;
      const auto [stop, wrong] = std::from_chars(text.data() + colon + 1, end, scale);
      if (wrong == std::errc() && stop == end) l = {text.substr(0, colon), scale};
    }
    m.lora.push_back(std::move(l));
  }
  // engine_options() has reported errors of this text.
  if (auto text = chat_template_text(m.chat_template)) m.chat_template = std::move(*text);
  return m;
}

ModelFileOptions file_options(const CommonOptions& o) { return file_options(model_options(o)); }

Result<DeviceSettings> device_settings(const CommonOptions& o) {
  DeviceSettings d = o;
  auto order = backend_order(o.order_list);
  if (!order) return order.error();
  d.backend_order = std::move(*order);
  if (auto ok = named_devices(o, d); !ok) return ok.error();
  if (o.split_list) {
    auto split = parse_split(*o.split_list);
    if (!split) return split.error();
    d.split = std::move(*split);
  }
  return d;
}

Result<EngineOptions> engine_options(const CommonOptions& o) {
  if (auto ok = check_stack(); !ok) return ok.error();
  if (auto text = chat_template_text(o.chat_template); !text) return text.error();
  auto d = device_settings(o);
  if (!d) return d.error();
  auto e = engine_options(*d, o);
  if (e) e->limit_megabytes = o.limit_megabytes;
  return e;
}

}  // namespace gimbal
