#include "engine/settings.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "device/reason.h"
#include "engine/settings_table.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {

Error out_of_range(const EngineSetting& s, const std::string& value, const std::string& limit) {
  return {Code::Usage, format("'{}' is {}, but must be {}", s.field, value, limit),
          "",          reason::kOutOfRange,
          s.field,     value,
          limit};
}

Status check_whole(const EngineSetting& s, int value) {
  if (value >= s.low && value <= s.high) return Done{};
  return out_of_range(s, format("{}", value), format("from {} to {}", s.low, s.high));
}

Status check_positive(const EngineSetting& s, float value) {
  if (value > 0 && std::isfinite(value)) return Done{};
  return out_of_range(s, format("{}", value), "a positive number, or 0 for the file's");
}

Status check_word(const EngineSetting& s, const std::string& value) {
  std::string expected;
  for (std::string_view rest = s.words; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('|'));
    if (word == value) return Done{};
    expected += (expected.empty() ? "one of " : ", ") + std::string(word);
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return out_of_range(s, gimbal::quoted(value), expected);
}

Status check(const DeviceSettings& d, const ModelOptions& m) {
  const ModelOptions defaults;
  for (const EngineSetting& s : kEngineSettings) {
    Status ok = Done{};
    if (const auto* whole = std::get_if<std::optional<int> DeviceSettings::*>(&s.member)) {
      if (d.**whole) ok = check_whole(s, *(d.**whole));
    } else if (const auto* number = std::get_if<int ModelOptions::*>(&s.member)) {
      if (m.**number != defaults.**number) ok = check_whole(s, m.**number);
    } else if (const auto* real = std::get_if<float ModelOptions::*>(&s.member)) {
      if (m.**real != 0) ok = check_positive(s, m.**real);
    } else if (const auto* word = std::get_if<std::string ModelOptions::*>(&s.member); word && s.words) {
      ok = check_word(s, m.**word);
    }
    if (!ok) return ok;
  }
  return Done{};
}

Result<std::vector<LayerShare>> layer_shares(const std::vector<DeviceLayers>& split) {
  constexpr const EngineSetting& row = engine_setting("split");
  std::vector<LayerShare> all;
  for (const DeviceLayers& part : split) {
    auto device = DeviceLocation::parse(part.device);
    if (!device) return out_of_range(row, gimbal::quoted(part.device), "devices, such as cpu or cuda:0");
    if (part.layers < -1)
      return out_of_range(row, format("{}", part.layers), "layers of 0 or more, or -1 for the rest");
    all.push_back({std::move(*device), part.layers});
  }
  return all;
}

}  // namespace

Result<EngineOptions> engine_options(const DeviceSettings& d, const ModelOptions& m) {
  if (auto ok = check(d, m); !ok) return ok.error();
  auto split = layer_shares(d.split);
  if (!split) return split.error();
  EngineOptions e;
  e.backend = d.backend, e.device = d.device, e.backend_order = d.backend_order;
  e.gpu_layers = d.gpu_layers, e.split = std::move(*split);
  e.strict = d.strict, e.allow_software_devices = d.allow_software_devices, e.refresh = d.refresh;
  e.threads = d.threads, e.cpu_variant = d.cpu_variant;
  e.verify = d.verify, e.packed = d.packed;
  e.run.context = m.context, e.run.sequences = m.sequences;
  if (m.batch) e.run.batch = m.batch;
  e.run.cache_type = *dtype_named(m.cache_type);
  e.run.kernels = {d.prefer_kernel, d.numerics == Numerics::Fast, d.strict};
  return e;
}

ModelFileOptions file_options(const ModelOptions& m) {
  ModelFileOptions f{m.kernel_config, {}, m};
  for (const LoraAdapter& l : m.lora) f.lora.push_back({l.path, l.scale});
  return f;
}

}  // namespace gimbal
