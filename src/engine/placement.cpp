// Which layers of a model are on which device.
#include <algorithm>

#include "base/format.h"
#include "engine/device_chooser.h"
#include "program/place.h"
#include "runtime/layers.h"
#include "runtime/memory_check.h"

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
  const RunOptions run = record_.run_options();
  const int layers = options_.gpu_layers.value_or(kAsManyAsFit);
  if (is_host(device) || layers == kAsManyAsFit) {
    auto whole = make_model_plan(file, device, run);
    if (!whole) return whole.error();
    if (is_host(device) || fits(*whole))
      return PlannedModel{source, std::move(opened), {}, {}, std::move(*whole)};
  }
  auto cpu = open_host();
  if (!cpu) return cpu.error();
  auto b =
      place_layers(file, device, **cpu, layers, record_.run_options());  // includes the record of the CPU
  if (!b) return b.error();
  PlannedModel p{source, std::move(opened), {}, {}, std::move(*b)};
  p.others.push_back(std::move(*cpu));
  const bool none = !p.plan.split();
  if (layers != kAsManyAsFit || (options_.gpu_layers && !none)) return p;

  const Stage& first = p.plan.stages[0];
  Fallback f{Fallback::Layers,
             format("{} on {}", contents(first), first.device->id()),
             "",
             {Code::OutOfMemory, first.why, ""}};
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
  auto plan = make_model_plan(*source.file, where, record_.run_options());
  if (!plan) return plan.error();
  PlannedModel p{source, std::move(opened.back()), {}, {}, std::move(*plan)};
  opened.pop_back();
  for (OpenedDevice& d : opened) p.others.push_back(std::move(d.device));
  return p;
}

}  // namespace gimbal
