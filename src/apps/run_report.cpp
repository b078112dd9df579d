#include "apps/run_report.h"

#include <algorithm>

#include "apps/terminal.h"

namespace gimbal {
namespace {

double rate(double tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0; }

// The first token's numbers came with the prompt: generating takes one step less than there are tokens.
double generation_rate(const Generated& g) {
  return g.tokens.size() < 2 ? 0 : rate(double(g.tokens.size() - 1), g.generate_seconds);
}

}  // namespace

std::vector<KernelCount> count_kernels(const Device& d, const Bucket& b) {
  std::vector<KernelCount> all;
  for (size_t i = 0; i < b.program.ops.size(); i++) {
    const char* kernel = d.kernel(b.choices[i].kernel).name;
    auto same =
        std::find_if(all.begin(), all.end(), [&](const KernelCount& k) { return k.kernel == kernel; });
    if (same != all.end()) same->ops++;
    else all.push_back({kOps[b.program.ops[i].kind].name, kernel, 1});
  }
  return all;
}

Json memory_json(const MemoryPlan& m) {
  return {{"weights", m.weights}, {"kv_cache", m.cache}, {"activations", m.activations},
          {"step", m.step},       {"output", m.output},  {"total", m.total()},
          {"free", m.free}};
}

std::string run_stats(const LoadedModel& loaded, const Generated& g, uint64_t seed) {
  const Device& d = loaded.model->device();
  const Blueprint& b = loaded.model->blueprint();
  Table t("ll");
  t.row({"device", format("{}, {} ({})", d.id(), d.describe().name ? printable(d.describe().name) : "",
                          short_reason(loaded.opened))});
  for (const KernelCount& k : count_kernels(d, b.buckets.front()))
    t.row({"  " + k.op, format("{} x {}", k.ops, k.kernel)});
  t.row({"memory",
         format("{}: weights {}, KV cache {} ({} positions, {}), activations {}",
                human_bytes(b.memory.total()), human_bytes(b.memory.weights), human_bytes(b.memory.cache),
                b.options.context, info(b.options.cache_type).name, human_bytes(b.memory.activations))});
  t.row({"loading", format("{:.0f} ms", loaded.load_seconds * 1e3)});
  t.row({"prompt",
         format("{} tokens, {:.1f} tokens/s", g.prompt_tokens, rate(g.prompt_tokens, g.prompt_seconds))});
  t.row({"first token",
         g.tokens.empty() ? std::string("none") : format("after {:.1f} ms", g.first_token_seconds * 1e3)});
  t.row({"generation", format("{} tokens{}", g.tokens.size(),
                              g.tokens.size() < 2 ? "" : format(", {:.1f} tokens/s", generation_rate(g)))});
  t.row({"finish", name_of(g.finish)});
  t.row({"seed", format("{}", seed)});
  return t.text();
}

Json run_json(const LoadedModel& loaded, const Generated& g, const std::string& text, uint64_t seed) {
  const Device& d = loaded.model->device();
  const Blueprint& b = loaded.model->blueprint();
  Json kernels = Json::array();
  for (const KernelCount& k : count_kernels(d, b.buckets.front()))
    kernels.push_back({{"op", k.op}, {"kernel", k.kernel}, {"ops", k.ops}});
  return {{"model", loaded.source.name},
          {"text", text},
          {"tokens", g.tokens},
          {"finish", name_of(g.finish)},
          {"prompt_tokens", g.prompt_tokens},
          {"seed", seed},
          {"context", b.options.context},
          {"device", d.id()},
          {"fallbacks", loaded.opened.fallbacks},
          {"timing",
           {{"load_seconds", loaded.load_seconds},
            {"prompt_seconds", g.prompt_seconds},
            {"first_token_seconds", g.first_token_seconds},
            {"generate_seconds", g.generate_seconds},
            {"prompt_tokens_per_second", rate(g.prompt_tokens, g.prompt_seconds)},
            {"tokens_per_second", generation_rate(g)}}},
          {"memory", memory_json(b.memory)},
          {"kernels", std::move(kernels)}};
}

}  // namespace gimbal
