// Endpoints for operators: health, metrics, devices, receipts, the web page.
#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "engine/report_json.h"
#include "server/api/call.h"
#include "server/page/page.h"

namespace gimbal::api {
void Receipts::keep(std::string id, std::string text) {
  const std::lock_guard lock(mutex_);
  kept_.emplace_back(std::move(id), std::move(text));
  if (kept_.size() > kMost) kept_.pop_front();
}

std::string Receipts::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, text] : kept_)
    if (known == id) return text;
  return {};
}

void Services::set_ready() {
  std::vector<std::shared_ptr<http::Exchange>> all;
  {
    const std::lock_guard lock(waiting_mutex);
    ready = true;
    all.swap(waiting);
  }
  for (const auto& one : all) one->wake();
}

Refused health_live(Call& call) {
  call.answer_json({{"status", "ok"}});
  return {};
}

Refused health_ready(Call& call) {
  const bool draining = call.services.draining, ready = call.services.ready && !draining;
  Json told = {{"status", ready ? "ok" : draining ? "draining" : "loading"}};
  if (!call.services.worker_id.empty()) told["worker_id"] = call.services.worker_id;
  call.answer(http::Response{ready ? 200 : 503, dump(told)});
  return {};
}

Refused show_backends(Call& call) {
  call.answer(http::Response{200, call.services.backends()});
  return {};
}

Refused reload_backends(Call& call) {
  if (auto no = Fields(call.body).finish()) return no;
  // Waiting for its turn, it would hold up a thread that others are answered by.
  if (call.services.reloading.exchange(true))
    return ApiError{409,
                    "the backends are being reloaded for another request; try again when it has its answer",
                    "", "reload_in_progress", 1};
  auto text = call.services.reload_backends();
  call.services.reloading = false;
  if (!text && (text.error().code == Code::Unsupported || text.error().code == Code::NoBackend))
    return ApiError{409, text.error().message, "", "backends_not_reloaded"};
  if (!text) return of(text.error());
  call.answer(http::Response{200, std::move(*text)});
  return {};
}

Refused show_receipt(Call& call) {
  std::string text = call.services.receipts.find(call.argument);
  if (text.empty())
    return ApiError{
        404,
        format("there is no receipt of {}; the last 1000 answers have one", quoted_briefly(call.argument)),
        "", "not_found"};
  call.answer(http::Response{200, std::move(text)});
  return {};
}

Refused show_explanation(Call& call) {
  const std::vector<KnownModel> known = call.services.models.list();
  if (std::none_of(known.begin(), known.end(), [&](const KnownModel& m) { return m.id == call.argument; }))
    return unknown_model(call.argument);
  Json workers = Json::array();  // empty of one that is not loaded
  for (const ServedModelPtr& m : call.services.models.loaded())
    if (m->id() == call.argument)
      for (const Explanation& e : m->explanations()) workers.push_back(report_json(e));
  call.answer(http::Response{200, dump({{"model", call.argument}, {"workers", std::move(workers)}})});
  return {};
}

// Ollama's clients look for its words here; a browser requests a page.
Refused show_page(Call& call) {
  const std::string* accepts = call.request.header("accept");
  if (!accepts || accepts->find("text/html") == accepts->npos) {
    http::Response r{200, "Ollama is running", "text/plain; charset=utf-8"};
    r.headers.push_back({"Vary", "Accept, Accept-Encoding"});
    call.answer(std::move(r));
    return {};
  }
  call.answer(page::response(call.request, call.services.version));
  return {};
}

Refused metrics(Call& call) {
  Services& s = call.services;
  const std::vector<ServedModelPtr> loaded = s.models.loaded();
  SchedulerNumbers n = s.models.past();  // behind it: those that are held now are not given back meanwhile
  std::string steps_of_models;
  for (const ServedModelPtr& model : loaded) {
    const uint64_t before = n.steps;
    for (const SchedulerNumbers& one : model->numbers()) n += one;
    steps_of_models +=
        format("gimbal_model_steps_total{{model={}}} {}\n", json_text(model->id()), n.steps - before);
  }
  std::string out;
  const auto describe = [&](const char* name, const char* type, const char* help) {
    out += format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  };
  const auto add = [&](const char* name, const char* type, const char* help, uint64_t value) {
    describe(name, type, help);
    out += format("{} {}\n", name, value);
  };
  const auto add_durations = [&](const char* name, const char* help, const Durations& d) {
    describe(name, "histogram", help);
    uint64_t sum = 0;
    for (size_t i = 0; i < d.counts.size(); i++) {
      sum += d.counts[i];
      const std::string bound = i < Durations::kBounds.size() ? format("{}", Durations::kBounds[i]) : "+Inf";
      out += format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, sum);
    }
    out += format("{0}_sum {1}\n{0}_count {2}\n", name, d.sum, sum);
  };
  add("gimbal_requests_running", "gauge", "Answers that are being computed.",
      uint64_t(std::max(0, s.running.load())));
  add("gimbal_requests_waiting", "gauge", "Requests in the queue.", uint64_t(n.waiting));
  add("gimbal_tokens_generated_total", "counter", "Tokens of all answers.", s.tokens_generated);
  add("gimbal_prompt_tokens_total", "counter", "Tokens of all prompts.", s.prompt_tokens);
  add("gimbal_prompt_tokens_shared_total", "counter", "Of these, computed for an earlier request.",
      n.shared_tokens);
  add("gimbal_draft_tokens_total", "counter", "Tokens that were guessed before they were computed.",
      s.drafted);
  add("gimbal_draft_tokens_accepted_total", "counter", "Of these, those that were right.", s.accepted);
  add("gimbal_steps_total", "counter", "Steps of the models.", n.steps);
  describe("gimbal_model_steps_total", "counter", "Steps of each model that is loaded.");
  out += steps_of_models;
  add("gimbal_rows_total", "counter", "Tokens that these steps computed, those of prompts among them.",
      n.rows);
  add("gimbal_preemptions_total", "counter", "Times that a text gave up its place, to go on later.",
      n.preemptions);
  add("gimbal_devices_lost_total", "counter", "Times that all went on on another device.", n.devices_lost);
  add("gimbal_worker_restarts_total", "counter", "Worker processes that were replaced.", s.worker_restarts);
  describe("gimbal_kv_pages", "gauge", "Pages of the KV cache, by who has them.");
  const int running = n.pages_running, kept = n.pages_kept;
  for (const auto& [state, pages] :
       {std::pair("running", running), {"kept", kept}, {"free", n.pages - running - kept}})
    out += format("gimbal_kv_pages{{state=\"{}\"}} {}\n", state, pages);
  add("gimbal_kv_pages_shared", "gauge", "Pages of running requests that two or more of them have in common.",
      uint64_t(n.pages_shared));
  describe("gimbal_memory_bytes", "gauge", "Memory of the devices that a model takes.");
  for (const KnownModel& m : s.models.list())
    if (m.loaded) out += format("gimbal_memory_bytes{{model={}}} {}\n", json_text(m.id), m.device_bytes);
  add_durations("gimbal_time_to_first_token_seconds", "From a request to its first token.", n.first_token);
  add_durations("gimbal_time_between_tokens_seconds", "From a token to the next one of the same text.",
                n.between_tokens);
  http::Response r{200, std::move(out), "text/plain; version=0.0.4; charset=utf-8"};
  call.answer(std::move(r));
  return {};
}

}  // namespace gimbal::api
