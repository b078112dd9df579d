#include "apps/limits.h"

#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "apps/terminal.h"
#include "base/file.h"
#include "base/format.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostKept = 32;  // devices, variants and numbers of threads; the oldest goes first

constexpr double kBelievable = 1.15;  // share of a limit: clocks vary

// XDG base directories: a relative path counts as not set.
fs::path cache_file() {
  for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", ""), std::pair("HOME", ".cache")}) {
    const char* folder = std::getenv(variable);
    if (folder && *folder == '/') return fs::path(folder) / below / "gimbal" / "limits.json";
  }
  return {};
}

// The linker's fingerprint of this program; its version where the linker leaves none.
std::string build_id() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* program, size_t, void* to) {  // the program itself comes first
        for (int i = 0; i < program->dlpi_phnum; i++) {
          const auto& part = program->dlpi_phdr[i];
          if (part.p_type != PT_NOTE) continue;
          const char* at = reinterpret_cast<const char*>(program->dlpi_addr + part.p_vaddr);
          const char* end = at + part.p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const char *name = at + sizeof note, *content = name + (note.n_namesz + 3) / 4 * 4;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
              for (unsigned k = 0; k < note.n_descsz; k++)
                *static_cast<std::string*>(to) += format("{:02x}", static_cast<unsigned char>(content[k]));
            at = content + (note.n_descsz + 3) / 4 * 4;
          }
        }
        return 1;
      },
      &id);
  return id.empty() ? GIMBAL_VERSION : id;
}

// What the numbers depend on. The features decide which instruction sets the device may use.
Json key_of(const Device& d) {
  const gimbal_device_info about = d.describe();
  return {{"device", d.id()},
          {"name", about.name ? about.name : ""},
          {"features", d.features()},
          {"threads", about.threads},
          {"build", build_id()}};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char text[16] = "";
  if (localtime_r(&now, &local)) std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

// Any JSON that is no list of limits counts as an empty one.
Json entries_of(const std::string& text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("limits") || !j["limits"].is_array()) return nullptr;
  return j["limits"];
}

std::optional<Limits> from_entry(const Json& e) {
  auto number = [&](const char* name) {
    const auto at = e.find(name);
    return at != e.end() && at->is_number() ? at->get<double>() : 0;
  };
  auto text = [&](const char* name) {
    const auto at = e.find(name);
    return at != e.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  Limits l;
  l.read = number("read_bytes_per_second");
  l.int8 = number("int8_operations_per_second");
  l.fp32 = number("fp32_operations_per_second");
  l.instruction_set = text("instruction_set");
  l.threads = int(number("threads"));
  l.measured = text("measured");
  l.from_cache = true;
  if (!(l.read > 0 && l.int8 > 0 && l.fp32 > 0)) return std::nullopt;
  return l;
}

// Whole or not at all: another process may read it at the same time.
Status save(const fs::path& path, const Json& entries) {
  std::error_code e;
  fs::create_directories(path.parent_path(), e);  // when it fails, the write says why
  const std::string draft = format("{}.{}", path.string(), getpid());
  if (auto ok = write_file(draft, Json{{"limits", entries}}.dump(1) + "\n"); !ok) return ok.error();
  fs::rename(draft, path, e);
  if (!e) return Done{};
  fs::remove(draft, e);
  return Error{Code::Failed, format("cannot replace '{}'", path.string()), ""};
}

}  // namespace

std::optional<Limits> device_limits(const Device& device, bool measure_again, bool quiet) {
  const fs::path path = cache_file();
  const Json key = key_of(device);
  Json entries = Json::array();
  std::error_code e;
  if (!path.empty() && fs::exists(path, e)) {
    const auto text = read_file(path.string());
    Json found = text ? entries_of(*text) : Json();
    if (found.is_array()) entries = std::move(found);
    else
      note(format("note: {}: the limits of this machine are measured anew",
                  text ? format("'{}' is not what gimbal wrote there", printable(path.string()))
                       : printable(text.error().message)));
  }
  Json kept = Json::array();
  std::optional<Limits> known;
  for (const Json& entry : entries)
    if (entry.is_object() && entry.value("key", Json()) == key) known = from_entry(entry);
    else if (entry.is_object()) kept.push_back(entry);
  if (known && !measure_again) {
    known->cached_in = path.string();
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
  kept.push_back(limits_json(l));
  kept.back().erase("cached_in"), kept.back().erase("from_cache");
  kept.back()["key"] = key;
  while (kept.size() > kMostKept) kept.erase(kept.begin());
  auto saved = path.empty() ? Status(Error{Code::Failed, "neither XDG_CACHE_HOME nor HOME is set", ""})
                            : save(path, kept);
  if (saved) l.cached_in = path.string();
  else
    note(format("note: the limits of this machine could not be kept for the next time: {}",
                printable(saved.error().message)));
  return l;
}

void doubt_limits(double largest_share) {
  if (largest_share > kBelievable)
    note(format(
        "note: {:.0f} % of a limit was reached, so the machine was busy when its limits were measured; "
        "--measure-again measures them anew",
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
