#include "workers/load.h"

#include <tuple>

#include "base/json_fields.h"
#include "engine/options.h"
#include "engine/settings_table.h"

namespace gimbal::v1 {

constexpr Numerics last_value(Numerics) { return Numerics::Fast; }
constexpr Verify last_value(Verify) { return Verify::Never; }
constexpr Packed last_value(Packed) { return Packed::Off; }

template <class IO, FieldsOf<DeviceLayers> S>
void row(IO& io, S& d) {
  io(d.device, d.layers);
}

template <class IO, FieldsOf<LoraAdapter> S>
void row(IO& io, S& l) {
  io(l.path, l.scale);
}

}  // namespace gimbal::v1

namespace gimbal {

template <class IO, FieldsOf<LoadSettings> S>
void fields(IO& io, S& s) {
  for (const EngineSetting& setting : kEngineSettings)
    std::visit(
        [&](auto member) {
          if constexpr (requires { s.devices.*member; }) io(setting.field, s.devices.*member);
          else io(setting.field, s.model.*member);
        },
        setting.member);
  io("parallel", s.parallel), io("cache_tokens", s.cache_tokens), io("queue", s.queue);
  io("models", s.models), io("together", s.together);
}

namespace wire {

template <class IO, FieldsOf<Load> S>
void fields(IO& io, S& m) {
  io("model", m.model), io("settings", m.settings), io("promised", m.promised);
  io("quiet", m.quiet), io("log_json", m.log_json), io("stores_pages", m.stores_pages);
  io("salt", m.salt);
}

namespace {

// Empty: all values are in the ranges of the options.
std::string out_of_range(const LoadSettings& s) {
  if (auto options = engine_options(s.devices, s.model); !options) return options.error().message;
  for (const auto& [name, value, low, high] :
       {std::tuple<const char*, int64_t, int64_t, int64_t>{"parallel", s.parallel, 1, 1024},
        {"cache_tokens", s.cache_tokens, 0, int64_t(1) << 40},
        {"queue", s.queue, 0, 100'000},
        {"models", s.models, 1, 1'000'000},
        {"together", s.together, 1, 1'000'000}})
    if (value < low || value > high) return format("{} is out of range", name);
  return "";
}

}  // namespace

Json json_of(const Load& m) { return JsonWriter::json(m); }

Result<Load> read_load(const Json& from) {
  Load m;
  JsonReader io(from, "load");
  fields(io, m);
  const std::string problem = io.problem().empty() ? out_of_range(m.settings) : io.problem();
  if (problem.empty()) return m;
  return Error{Code::Malformed, format("a message between the server and its worker: {}", problem)};
}

}  // namespace wire
}  // namespace gimbal
