#include "engine/options.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "base/format.h"
#include "base/text.h"
#include "device/reason.h"
#include "discovery/registry.h"
#include "engine/settings_table.h"
#include "files/name_pattern.h"
#include "runtime/tensor_rules.h"
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

// "cuda:1", or "CUDA1" as llama.cpp has it.
Result<DeviceLocation> device_named(std::string name) {
  for (char& c : name) c = char(std::tolower(uint8_t(c)));
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits > 0 && digits < name.size() && name.find(':') == name.npos) name.insert(digits, ":");
  return DeviceLocation::parse(name);
}

Result<std::vector<TensorOverride>> tensor_overrides(const DeviceSettings& d) {
  constexpr int kAllLayers = std::numeric_limits<int>::max();
  constexpr const EngineSetting& row = engine_setting("override_tensor");
  std::vector<TensorOverride> all;
  for (const std::string& list : d.override_tensor)
    for (size_t at = 0, end; at <= list.size(); at = end + 1) {
      end = std::min(list.find(',', at), list.size());
      const std::string part = list.substr(at, end - at);
      const size_t equals = part.rfind('=');
      auto device = device_named(equals == part.npos ? "" : part.substr(equals + 1));
      if (!device || equals == 0)
        return out_of_range(row, gimbal::quoted(part), "PATTERN=DEVICE, such as ffn_.*_exps=cpu");
      const std::string pattern = part.substr(0, equals);
      if (auto ok = NamePattern::compile(pattern); !ok) {
        Error e = ok.error();
        e.field = row.field, e.value = part;
        return e;
      }
      all.push_back({pattern, std::move(*device), row.field,
                     format("'{}' {}", row.field, gimbal::quoted(part)), kAllLayers});
    }
  const DeviceLocation cpu{kHostBackend, 0};
  if (d.cpu_moe) all.push_back({kExpertTensors, cpu, "cpu_moe", "'cpu_moe'", kAllLayers});
  else if (d.n_cpu_moe.value_or(0) > 0)
    all.push_back({kExpertTensors, cpu, "n_cpu_moe", format("'n_cpu_moe' {}", *d.n_cpu_moe), *d.n_cpu_moe});
  return all;
}

}  // namespace

Result<EngineOptions> engine_options(const DeviceSettings& d, const ModelOptions& m) {
  if (auto ok = check(d, m); !ok) return ok.error();
  auto split = layer_shares(d.split);
  if (!split) return split.error();
  auto overrides = tensor_overrides(d);
  if (!overrides) return overrides.error();
  EngineOptions e;
  e.backend = d.backend, e.device = d.device, e.backend_order = d.backend_order;
  e.gpu_layers = d.gpu_layers, e.split = std::move(*split);
  e.overrides = std::move(*overrides), e.experts_may_move = d.n_cpu_moe != 0;
  e.strict = d.strict, e.allow_software_devices = d.allow_software_devices, e.refresh = d.refresh;
  e.threads = d.threads, e.cpu_variant = d.cpu_variant;
  e.verify = d.verify, e.packed = d.packed;
  e.run.context = m.context, e.run.sequences = m.sequences;
  if (m.batch) e.run.batch = m.batch;
  if (!m.experts_from_disk.empty()) {
    const auto bytes = bytes_named(m.experts_from_disk);
    if (!bytes)
      return out_of_range(engine_setting("experts_from_disk"), gimbal::quoted(m.experts_from_disk),
                          "a size such as 6GB or 500MiB");
    e.run.experts_from_disk = *bytes;
  }
  e.run.cache_type = *dtype_named(m.cache_type);
  e.run.cache_rotation = m.cache_rotation == "on"    ? CacheRotation::On
                         : m.cache_rotation == "off" ? CacheRotation::Off
                                                     : CacheRotation::Auto;
  e.run.kernels = {d.prefer_kernel, d.numerics == Numerics::Fast, d.strict};
  return e;
}

ModelFileOptions file_options(const ModelOptions& m) {
  ModelFileOptions f{m.kernel_config, {}, m};
  for (const LoraAdapter& l : m.lora) f.lora.push_back({l.path, l.scale});
  return f;
}

}  // namespace gimbal
