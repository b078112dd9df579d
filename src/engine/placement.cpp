// Which layers of a model are on which device.
#include <algorithm>

#include "base/format.h"
#include "engine/device_chooser.h"
#include "program/place.h"
#include "runtime/memory_check.h"
#include "runtime/stages.h"

namespace gimbal {

// On the chosen device. If it lacks a kernel for this model, the next best one is used.
Result<PlannedModel> DeviceChooser::place_somewhere(const ModelFile& source) {
  for (;;) {
    auto opened = open_device();
    if (!opened) return opened.error();
    const std::string device = opened->device->id();
    const bool host = is_host(*opened->device);
    auto planned = place_on(source, std::move(*opened));
    if (planned || host || planned.error().reason != std::string_view(kNoKernel)) return planned;
    // A device that lost kernels by verification is given up with that reason: Loader::plan_verified().
    if (record_.lost_kernels(device)) return planned;
    if (auto ok = record_.give_up({device, "", planned.error()}, Fallback::Refused); !ok) return ok.error();
  }
}

Result<PlannedModel> DeviceChooser::place(const ModelFile& source) {
  auto planned = options_.split.empty() ? place_somewhere(source) : place_split(source);
  if (!planned) return planned;
  std::vector<Fallback> wanted;
  for (const Rejection& r : planned->opened.fallbacks)
    wanted.push_back({Fallback::Device, r.what, planned->opened.device->id(), r.error()});
  planned->fallbacks.insert(planned->fallbacks.begin(), wanted.begin(), wanted.end());
  return planned;
}

Result<PlannedModel> DeviceChooser::place_on(const ModelFile& source, OpenedDevice&& opened) {
  const ModelSource& file = *source.file;
  const Device& device = *opened.device;
  PlannedModel p{source, std::move(opened), {}, {}, {}};
  auto rules = tensor_rules(source, device, p.others);
  if (!rules) return rules.error();
  auto options = [&] {  // with the record of all devices that are open now
    RunOptions run = record_.run_options();
    run.tensor_rules = *rules;
    return run;
  };
  const int layers = options_.gpu_layers.value_or(kAsManyAsFit);
  if (is_host(device) || layers == kAsManyAsFit) {
    auto whole = make_model_plan(file, device, options());
    if (!whole) return whole.error();
    if (is_host(device) || fits(*whole)) {
      p.plan = std::move(*whole);
      return p;
    }
  }
  auto host = std::find_if(p.others.begin(), p.others.end(), [](const auto& d) { return is_host(*d); });
  if (host == p.others.end()) {
    auto cpu = open_host();
    if (!cpu) return cpu.error();
    host = p.others.insert(p.others.end(), std::move(*cpu));
  }
  auto b = place_layers(file, device, **host, layers, options(), options_.experts_may_move);
  if (!b) return b.error();
  p.plan = std::move(*b);
  // The parts that are on the CPU without a request: layers, or experts.
  const bool experts = p.plan.options.tensor_rules.size() > rules->size();
  const auto away = std::find_if(p.plan.stages.begin(), p.plan.stages.end(), [&](const Stage& s) {
    return experts ? s.device == host->get() : has_layers(s);
  });
  const bool none = has_layers(*away) && &*away == &p.plan.last();
  if (layers != kAsManyAsFit || (options_.gpu_layers && !none) || away->device == &device) return p;

  Fallback f{Fallback::Layers,
             format("{} on {}", contents(*away), away->device->id()),
             "",
             {Code::OutOfMemory, away->why, ""}};
  if (options_.strict)
    return Error{Code::OutOfMemory,
                 format("{}: {}", f.what, f.why.message),
                 "",
                 "",
                 "gpu_layers",
                 options_.gpu_layers ? "-1" : "",
                 "",
                 {{"strict", "false", ""}, {"gpu_layers", "", "requests it"}}};
  record_.emit_once(f);
  p.fallbacks.push_back(std::move(f));
  return p;
}

Result<PlannedModel> DeviceChooser::place_split(const ModelFile& source) {
  if (options_.backend != "auto" || options_.device || options_.gpu_layers)
    return Error{
        Code::Usage,
        "'split' says which devices and how many layers; a backend, a device and a number of layers on "
        "the GPU contradict it",
        "give only one of them", "", "split"};
  std::vector<LayerShare> shares = options_.split;
  if (std::count_if(shares.begin(), shares.end(), [](const LayerShare& s) { return s.layers < 0; }) > 1)
    return Error{Code::Usage, "'split': only one device can have the rest of the layers", "", "", "split"};
  auto config = configure(*source.file);
  if (!config) return config.error();
  int rest = config->layers;
  for (const LayerShare& s : shares) rest -= std::max(0, s.layers);
  std::vector<OpenedDevice> opened;
  std::vector<Placement> where;
  for (LayerShare& s : shares) {
    if (s.layers < 0) s.layers = std::max(0, rest);
    auto same = std::find_if(opened.begin(), opened.end(),
                             [&](const OpenedDevice& d) { return d.device->id() == s.device.id(); });
    if (same == opened.end()) {
      DeviceRequest one = request();
      one.backend = s.device.backend, one.index = s.device.index;
      one.strict = true;  // no other device in its place
      auto device = open(one);
      if (!device) {
        Error e = device.error();  // dropping strict would not help
        if (!options_.strict)
          std::erase_if(e.changes, [](const Change& c) { return c.field == std::string_view("strict"); });
        return e;
      }
      if (auto ok = check_settings(*device); !ok) return ok.error();
      same = opened.insert(opened.end(), std::move(*device));
    }
    where.push_back({same->device.get(), s.layers, "requested by 'split'"});
  }
  PlannedModel p{source, std::move(opened.back()), {}, {}, {}};
  opened.pop_back();
  for (OpenedDevice& d : opened) p.others.push_back(std::move(d.device));
  auto rules = tensor_rules(source, *p.opened.device, p.others);
  if (!rules) return rules.error();
  RunOptions run = record_.run_options();
  run.tensor_rules = std::move(*rules);
  auto plan = make_model_plan(*source.file, where, run);
  if (!plan) return plan.error();
  p.plan = std::move(*plan);
  return p;
}

}  // namespace gimbal
