#include "apps/reports/next_steps.h"

#include <unistd.h>

#include "base/format.h"
#include "base/json.h"
#include "device/reason.h"

namespace gimbal {
namespace {

const BackendReport* report_of(const Machine& m, const std::string& backend) {
  for (const BackendReport& r : m.reports)
    if (r.backend == backend) return &r;
  return nullptr;
}

// The largest model that leaves a third of the device's free memory to the context and to others; where
// nothing is known of memory, the smallest.
const CatalogEntry* fitting_model(const Machine& m) {
  uint64_t room = 0;
  if (m.best)
    if (const BackendReport* r = report_of(m, m.best->backend))
      for (const DeviceReport& d : r->devices)
        if (d.index == m.best->index) room = d.memory_free.value_or(d.memory_total) / 3 * 2;
  const CatalogEntry* out = nullptr;
  for (const CatalogEntry& e : m.models.entries)
    if (e.bytes && (!out || (e.bytes <= room ? e.bytes > out->bytes || out->bytes > room
                                             : out->bytes > room && e.bytes < out->bytes)))
      out = &e;
  return out;
}

std::string quoted_for_shell(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Quotes a shell word that has other characters than these.
std::string typed(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/:@,=") ==
      std::string::npos)
    return word;
  return quoted_for_shell(word);
}

}  // namespace

std::vector<NextStep> next_steps(const Machine& m) {
  std::vector<NextStep> out;
  // A card that nothing here can use comes first: it is why people look.
  for (const auto& [file, backend] : m.seen) {
    const BackendReport* r = report_of(m, backend);
    if (!r || r->available) continue;
    const bool absent = r->reason == reason::kNotBuilt || r->reason == reason::kPluginMissing;
    out.push_back(
        absent ? NextStep{format("there is a GPU ({}), and no plugin for it", file),
                          "sudo apt install ./gimbal-backends_*.deb"}
               : NextStep{format("there is a GPU ({}): {}", file, r->remedy.empty() ? r->message : r->remedy),
                          format("gimbal verify --backend {}", backend)});
    break;
  }
  if (!m.best) {
    out.push_back({"no device can be used; the reasons in JSON", "gimbal doctor --json"});
    return out;
  }
  const CatalogEntry* model = fitting_model(m);
  const std::string name = model ? typed(model->name) : "";
  if (!model) {
    out.push_back({"a story from the built-in model", "gimbal run -p \"Once upon a time\""});
    out.push_back(m.can_pull ? NextStep{"a model of your own, by its name",
                                        "gimbal pull hf.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M"}
                             : NextStep{"models of your own: a folder with .gguf files",
                                        "GIMBAL_MODELS=/data/models gimbal models"});
    out.push_back({"a server for other programs", "gimbal serve"});
    return out;
  }
  out.push_back({format("a model that fits (of {} found here)", m.models.entries.size()),
                 format("gimbal run {}", name)});
  out.push_back({"a server for other programs", format("gimbal serve {}", name)});
  out.push_back({"its memory, and which kernels run", format("gimbal plan {0}; gimbal explain {0}", name)});
  return out;
}

std::vector<std::pair<std::string, std::string>> gpu_device_files() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [file, backend] :
       {std::pair("/dev/nvidia0", "cuda"), {"/dev/kfd", "rocm"}, {"/dev/dri/renderD128", "vulkan"}})
    if (access(file, F_OK) == 0) out.emplace_back(file, backend);
  return out;
}

std::string from_here(std::string url, const std::string& me) {
  for (const char* everywhere : {"//0.0.0.0:", "//[::]:"})
    if (const size_t i = url.find(everywhere); i != std::string::npos)
      url.replace(i, std::string_view(everywhere).size(), "//" + me + ":");
  return url;
}

std::string first_request(const std::string& url, const std::string& model, bool needs_key) {
  const Json body{{"model", model}, {"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
  return format("curl {}/v1/chat/completions -H 'Content-Type: application/json'{} -d {}", url,
                needs_key ? " -H \"Authorization: Bearer $GIMBAL_API_KEY\"" : "",
                quoted_for_shell(body.dump()));
}

}  // namespace gimbal
