// Endpoints for operators: health, metrics, devices, receipts, the web page.
#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "engine/explanation.h"
#include "server/api/call.h"
#include "server/page/page.h"

namespace gimbal::api {

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
  std::string text = call.services.receipts.find(call.argument, call.owner);
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

}  // namespace gimbal::api
