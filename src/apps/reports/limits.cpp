#include "apps/reports/limits.h"

#include <ctime>

#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/json.h"
#include "engine/machine_cache.h"

namespace gimbal {
namespace {

constexpr double kBelievable = 1.15;  // share of a limit: clocks vary

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char text[16] = "";
  if (localtime_r(&now, &local)) std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

// nullopt if it is missing or invalid.
std::optional<Limits> from_entry(const Json& e) {
  if (!e.is_object()) return std::nullopt;
  auto number = [&](const char* name) {
    const auto at = e.find(name);
    return at != e.end() && at->is_number() ? at->get<double>() : 0;
  };
  Limits l;
  l.read = number("read_bytes_per_second");
  l.int8 = number("int8_operations_per_second");
  l.fp32 = number("fp32_operations_per_second");
  l.instruction_set = text_in(e, "instruction_set");
  l.threads = int(number("threads"));
  l.measured = text_in(e, "measured");
  l.from_cache = true;
  if (!(l.read > 0 && l.int8 > 0 && l.fp32 > 0)) return std::nullopt;
  return l;
}

}  // namespace

std::optional<Limits> device_limits(const Device& device, bool measure_again, std::optional<int> megabytes,
                                    bool quiet) {
  MachineCache kept("limits");
  Json key = key_of(device);
  if (megabytes) key["limit_megabytes"] = *megabytes;
  if (!kept.damage().empty())
    note(format("note: {}: the limits of this machine are measured again", printable(kept.damage())));
  if (auto known = from_entry(kept.find(key)); known && !measure_again) {
    known->cached_in = kept.path();
    return known;
  }

  if (!quiet && stderr_is_terminal()) note("measuring this machine's limits ...");
  auto m = device.measure();
  if (!m) {
    note(format("note: no shares of the limit are shown: {}", printable(m.error().message)));
    return std::nullopt;
  }
  Limits l{m->read_bytes_per_second,
           m->int8_ops_per_second,
           m->fp32_ops_per_second,
           m->instruction_set ? m->instruction_set : "",
           int(m->threads),
           today(),
           "",
           false};
  Json entry = limits_json(l);
  entry.erase("cached_in"), entry.erase("from_cache");
  // Keeps the measurements of engine/measured.h in the same file.
  if (const Json& before = kept.find(key); before.is_object() && before.contains("products"))
    entry["products"] = before["products"];
  const Status saved = kept.put(key, std::move(entry));
  if (saved) l.cached_in = kept.path();
  else
    note(format("note: the limits of this machine could not be saved: {}", printable(saved.error().message)));
  return l;
}

void doubt_limits(double largest_share) {
  if (largest_share > kBelievable)
    note(
        format("note: {:.0f} % of a limit was reached, so the machine was busy when its limits were "
               "measured; --measure-again measures them again",
               100 * largest_share));
}

std::string human_operations(double per_second) {
  return per_second >= 1e12 ? format("{:.2f} Top/s", per_second / 1e12)
                            : format("{:.{}f} Gop/s", per_second / 1e9, per_second >= 1e10 ? 0 : 2);
}

std::string limits_text(const Limits& l) {
  return format("memory {:.1f} GB/s, int8 {}, fp32 {} ({}{}; measured {}{})", l.read / 1e9,
                human_operations(l.int8), human_operations(l.fp32), l.instruction_set,
                l.threads ? format(", {} thread{}", l.threads, l.threads == 1 ? "" : "s") : "",
                l.from_cache ? l.measured : "just now",
                l.cached_in.empty() ? "" : format(", cached in {}", printable(l.cached_in)));
}

Json limits_json(const std::optional<Limits>& l) {
  if (!l) return nullptr;
  return {{"read_bytes_per_second", l->read},
          {"int8_operations_per_second", l->int8},
          {"fp32_operations_per_second", l->fp32},
          {"instruction_set", l->instruction_set},
          {"threads", l->threads},
          {"measured", l->measured},
          {"cached_in", l->cached_in},
          {"from_cache", l->from_cache}};
}

}  // namespace gimbal
