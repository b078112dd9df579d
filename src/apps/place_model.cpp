#include "apps/place_model.h"

#include <algorithm>
#include <charconv>

#include "apps/terminal.h"
#include "device/location.h"
#include "runtime/layers.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

struct Share {
  DeviceLocation device;
  int layers = -1;  // -1: the rest
};

// "cuda:0=20,cpu=rest".
Result<std::vector<Share>> parse_split(const std::string& text) {
  auto wrong = [&](std::string_view part) {
    return Error{Code::Usage,
                 format("--split: '{}' is not a device and its number of layers", printable(part)),
                 "write DEVICE=LAYERS with commas between, such as cpu=4,cuda:0=rest"};
  };
  std::vector<Share> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = std::min(part.find('='), part.size());
    auto device = DeviceLocation::parse(part.substr(0, equals));
    if (!device || equals == part.size()) return wrong(part);
    Share s{std::move(*device)};
    if (const std::string_view layers = std::string_view(part).substr(equals + 1); layers != "rest") {
      const auto [stop, error] = std::from_chars(layers.data(), layers.data() + layers.size(), s.layers);
      if (error != std::errc() || stop != layers.data() + layers.size() || s.layers < 0) return wrong(part);
    }
    all.push_back(std::move(s));
  }
  if (std::count_if(all.begin(), all.end(), [](const Share& s) { return s.layers < 0; }) > 1)
    return Error{Code::Usage, "--split: only one device can have the rest of the layers", ""};
  return all;
}

Result<PlannedModel> plan_split(ModelFile&& source, const EngineOptions& o, const RunOptions& run,
                                bool quiet) {
  if (o.backend != "auto" || o.device || o.gpu_layers)
    return Error{Code::Usage,
                 "--split says which devices and how many layers; --backend, --device and "
                 "--gpu-layers contradict it",
                 "give only --split"};
  auto shares = parse_split(*o.split);
  if (!shares) return shares.error();
  auto config = configure(*source.file);
  if (!config) return config.error();
  int rest = config->layers;
  for (const Share& s : *shares) rest -= std::max(0, s.layers);
  std::vector<OpenedDevice> opened;
  std::vector<Placement> where;
  for (Share& s : *shares) {
    if (s.layers < 0) s.layers = std::max(0, rest);
    auto same = std::find_if(opened.begin(), opened.end(),
                             [&](const OpenedDevice& d) { return d.device->id() == s.device.id(); });
    if (same == opened.end()) {
      EngineOptions one = o;
      one.backend = s.device.backend, one.device = s.device.index,
      one.strict = true;  // no other device in its place
      auto device = open_device(one, quiet);
      if (!device) return device.error();
      same = opened.insert(opened.end(), std::move(*device));
    }
    where.push_back({same->device.get(), s.layers, "asked for by --split"});
  }
  auto blueprint = make_blueprint(*source.file, where, run);
  if (!blueprint) return blueprint.error();
  PlannedModel p{std::move(source), std::move(opened.back()), {}, std::move(*blueprint)};
  opened.pop_back();
  for (OpenedDevice& d : opened) p.others.push_back(std::move(d.device));
  return p;
}

// The CPU beside a GPU, with the options that are for it.
Result<std::unique_ptr<Device>> open_cpu(const EngineOptions& o) {
  EngineOptions cpu;
  cpu.backend = "cpu", cpu.strict = true, cpu.threads = o.threads, cpu.cpu_variant = o.cpu_variant;
  auto opened = open_device(cpu, true);
  if (!opened) return opened.error();
  return std::move(opened->device);
}

}  // namespace

Result<PlannedModel> plan_model(ModelFile&& source, const EngineOptions& options, const RunOptions& run,
                                bool quiet) {
  if (options.split) return plan_split(std::move(source), options, run, quiet);
  auto opened = open_device(options, quiet);
  if (!opened) return opened.error();
  const Gguf& file = *source.file;
  const Device& device = *opened->device;
  const int layers = options.gpu_layers.value_or(kAsManyAsFit);
  if (std::string(device.backend()) == "cpu" || layers == kAsManyAsFit) {
    auto whole = make_blueprint(file, device, run);
    if (!whole) return whole.error();
    if (std::string(device.backend()) == "cpu" || fits(*whole))
      return PlannedModel{std::move(source), std::move(*opened), {}, std::move(*whole)};
  }
  auto cpu = open_cpu(options);
  if (!cpu) return cpu.error();
  auto b = place_layers(file, device, **cpu, layers, run);
  if (!b) return b.error();
  if (layers == kAsManyAsFit) {
    const std::string what =
        format("{} on {}: {}", contents(b->parts[0]), b->parts[0].device->id(), b->parts[0].why);
    const bool none = !b->split();
    if (options.strict && (none || !options.gpu_layers))
      return Error{Code::OutOfMemory, "--strict: " + what,
                   "leave --strict out, or ask for it with --gpu-layers"};
    if (none || !options.gpu_layers) {
      note("note: " + what);
      opened->fallbacks.push_back(what);
    }
  }
  PlannedModel p{std::move(source), std::move(*opened), {}, std::move(*b)};
  p.others.push_back(std::move(*cpu));
  return p;
}

Result<PlannedModel> open_and_plan(const std::string& model, const EngineOptions& options, bool quiet,
                                   decltype(plan_model) plan) {
  auto run = run_options(options);
  if (!run) return run.error();
  auto source = open_model_file(model);
  if (!source) return source.error();
  auto tokenizer = Tokenizer::create(*source->file);
  auto planned = plan(std::move(*source), options, *run, quiet);
  if (planned && tokenizer) planned->tokenizer = std::move(*tokenizer);
  return planned;
}

std::vector<std::string> placement_lines(const PlannedModel& p) {
  const Blueprint& b = p.blueprint;
  if (!b.split()) {
    const Part& only = b.parts[0];
    return {format("all {} layers on {} ({})", b.config.layers, only.device->id(),
                   only.why.empty() ? short_reason(p.opened) : only.why)};
  }
  std::vector<std::string> lines;
  for (const Part& part : b.parts)
    lines.push_back(format("{} on {} ({})", contents(part), part.device->id(), part.why));
  return lines;
}

}  // namespace gimbal
