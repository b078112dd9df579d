#include "apps/reports/run_report.h"

#include <algorithm>
#include <set>

#include "apps/reports/receipt_rows.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/explanation.h"
#include "files/packed_file.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

double rate(double tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0; }

}  // namespace

double prompt_rate(const Generated& g) { return rate(g.prompt_tokens, g.prompt_seconds); }

// The first token's numbers came with the prompt: generating takes one step less than there are tokens.
double generation_rate(const Generated& g) {
  return g.tokens.size() < 2 ? 0 : rate(double(g.tokens.size() - 1), g.generate_seconds);
}

Json timing_json(const Generated& g, double load_seconds) {
  return {{"load_seconds", load_seconds},
          {"prompt_seconds", g.prompt_seconds},
          {"first_token_seconds", g.first_token_seconds},
          {"generate_seconds", g.generate_seconds},
          {"prompt_tokens_per_second", prompt_rate(g)},
          {"tokens_per_second", generation_rate(g)}};
}

size_t device_count(const ModelPlan& b) {
  std::set<const Device*> all;
  for (const Stage& p : b.stages) all.insert(p.device);
  return all.size();
}

std::vector<PlacedLayers> worded_placement(const ModelPlan& b, const OpenedDevice& opened) {
  std::vector<PlacedLayers> all = placement(b);
  for (PlacedLayers& p : all) p.reason = p.reason.empty() ? reason_of(opened) : with_options(p.reason);
  return all;
}

std::vector<std::string> packed_lines(const ModelPlan& b) {
  std::vector<std::string> all;
  for (const Stage& p : b.stages) {
    const std::string on = b.split() ? p.device->id() + ": " : "";
    if (p.reads_experts() && p.packed)
      all.push_back(format("{}{} read from {}; of {} of experts there, at most {} at one time", on,
                           human_bytes(p.experts.in_memory), gimbal::quoted(p.packed->path()),
                           human_bytes(p.experts.all), human_bytes(p.experts.budget)));
    else if (p.packed)
      all.push_back(format("{}{}, mapped from {}", on, human_bytes(p.memory.weights),
                           gimbal::quoted(p.packed->path())));
  }
  return all;
}

std::string cache_line(const ModelPlan& plan) {
  const DTypeInfo& t = info(plan.options.cache_type);
  if (t.block == 1) return t.name;
  return format("{}, {}rotated: {}", t.name, plan.rotation.rotated ? "" : "not ",
                with_options(plan.rotation.why));
}

std::string speed_line(const ExpertSpeed& s) {
  return format(
      "at least {:.1f} tokens/s with this disk: a token chooses {} of experts, and {}/s were measured{}; "
      "{:.1f} "
      "if all experts are chosen equally often",
      s.at_least, human_bytes(s.of_token), human_bytes(uint64_t(s.disk)),
      s.direct ? "" : " through the page cache, which the file system does not let us avoid", s.evenly);
}

// The reads of a model with experts on disk, in all its steps.
static void add_expert_counts(Table& t, const Model& m) {
  for (size_t i = 0; i < m.plan().stages.size(); i++) {
    if (!m.plan().stages[i].reads_experts()) continue;
    const ExpertCache::Counts c = m.expert_counts(i);
    t.row(
        {"experts", format("{} wanted, {} read ({:.0f} %), {} dropped; {} read in all, at most {} in memory",
                           c.wanted, c.read, c.wanted ? 100 * double(c.read) / double(c.wanted) : 0,
                           c.dropped, human_bytes(c.bytes_read), human_bytes(c.bytes_at_most))});
  }
}

std::string run_stats(const LoadedModel& loaded, const Generated& g, uint64_t seed,
                      const std::vector<ReceiptLine>& before) {
  const ModelPlan& b = loaded.model->plan();
  Table t("ll");
  if (b.split()) {
    for (const Stage& p : b.stages)
      t.row({"device", format("{}: {} ({})", p.device->id(), contents(p),
                              p.why.empty() ? reason_of(loaded.opened) : with_options(p.why))});
  } else {
    const Device& d = b.device();
    const gimbal_device_info about = d.describe();
    t.row({"device", format("{}, {} ({})", d.id(), about.name ? printable(about.name) : "",
                            b.stages[0].why.empty() ? loaded.opened.why : with_options(b.stages[0].why))});
  }
  add_receipt(t, since(loaded.model->receipt(), before), b.device().id());
  for (const MemoryUse& u : memory_uses(b)) {
    if (!u.device) continue;
    t.row({"memory", format("{}{}: weights {}, KV cache {} ({} positions, {}), activations {}",
                            b.split() ? u.device->id() + " " : "", human_bytes(u.sum.total()),
                            human_bytes(u.sum.weights), human_bytes(u.sum.cache), b.options.context,
                            cache_name(info(b.options.cache_type).name, b.rotation.rotated),
                            human_bytes(u.sum.activations))});
  }
  for (const std::string& line : packed_lines(b)) t.row({"weights", line});
  if (const auto& p = loaded.model->prefaulted()) t.row({"prefault", p->text()});
  add_expert_counts(t, *loaded.model);
  t.row({"loading", format("{:.0f} ms", loaded.load_seconds * 1e3)});
  t.row({"prompt", format("{} tokens, {:.1f} tokens/s", g.prompt_tokens, prompt_rate(g))});
  if (g.stored_tokens)
    t.row({"prefix store", format("{} tokens before them in {:.1f} ms, up to page {}", g.stored_tokens,
                                  g.stored_seconds * 1e3, g.stored_page.substr(0, 12))});
  t.row({"first token",
         g.tokens.empty() ? std::string("none") : format("after {:.1f} ms", g.first_token_seconds * 1e3)});
  t.row({"generation", format("{} token{}{}", g.tokens.size(), g.tokens.size() == 1 ? "" : "s",
                              g.tokens.size() < 2 ? "" : format(", {:.1f} tokens/s", generation_rate(g)))});
  if (!g.drafted_by.empty())
    t.row({"drafts", format("{}, from {}", drafts_text(g.drafts), printable(g.drafted_by))});
  t.row({"finish", name_of(g.finish)});
  t.row({"seed", format("{}", seed)});
  return t.text();
}

std::string explain_finish(Finish f, const Model& m) {
  if (f != Finish::ContextFull) return "";
  return format(
      "context full: {} of {} positions used; start with a larger --ctx (the model was trained on {})",
      m.context(), m.context(), m.config().context);
}

Json drafts_json(const std::string& from, const DraftCounts& c) {
  return {{"from", from},         {"steps", c.steps},       {"tokens", c.tokens},
          {"drafted", c.drafted}, {"accepted", c.accepted}, {"seconds", c.seconds}};
}

std::string drafts_text(const DraftCounts& c) {
  return format("{} of {} kept{}, {:.2f} tokens a step", c.accepted, c.drafted,
                c.drafted ? format(" ({:.0f} %)", 100 * double(c.accepted) / double(c.drafted)) : "",
                c.steps ? double(c.tokens) / double(c.steps) : 0);
}

Json logprobs_json(const Generated& g) {
  Json all = g.logprobs.empty() ? Json() : Json::array();
  for (size_t i = 0; i < g.logprobs.size(); i++) {
    Json top = Json::array();
    for (const TokenProbability& p : g.top[i]) top.push_back({{"token", p.token}, {"logprob", p.logprob}});
    all.push_back({{"token", g.tokens[i]}, {"logprob", g.logprobs[i]}, {"top", std::move(top)}});
  }
  return all;
}

// {bytes, wanted, threads, seconds, stopped}; null: no weights are mapped.
static Json prefault_json(const Model& m) {
  const auto& p = m.prefaulted();
  if (!p) return {};
  return {{"bytes", p->bytes},
          {"wanted", p->wanted},
          {"threads", p->threads},
          {"seconds", p->seconds},
          {"stopped", p->stopped.empty() ? Json() : Json(p->stopped)}};
}

Json run_json(const LoadedModel& loaded, const Generated& g, const std::string& text, uint64_t seed) {
  const ModelPlan& b = loaded.model->plan();
  const std::vector<ReceiptLine> receipt = loaded.receipt();
  return {{"model", loaded.source.name},
          {"text", text},
          {"tokens", g.tokens},
          {"logprobs", logprobs_json(g)},
          {"finish", name_of(g.finish)},
          {"prompt_tokens", g.prompt_tokens},
          {"prefix_store",
           g.stored_tokens
               ? Json({{"tokens", g.stored_tokens}, {"page", g.stored_page}, {"seconds", g.stored_seconds}})
               : Json()},
          {"seed", seed},
          {"context", b.options.context},
          {"device", b.device().id()},
          {"placement", report_json(worded_placement(b, loaded.opened))},
          {"fallbacks", sentences(loaded.fallbacks)},
          {"prefault", prefault_json(*loaded.model)},
          {"timing", timing_json(g, loaded.load_seconds)},
          {"draft", g.drafted_by.empty() ? Json() : drafts_json(g.drafted_by, g.drafts)},
          {"memory", report_json(memory_of_devices(b))},
          {"kernels", receipt_json(receipt)},
          {"not_counted", not_counted(receipt)}};
}

}  // namespace gimbal
