#include "apps/reports/pull_console.h"

#include "apps/options/options.h"
#include "apps/toolkit/exit_code.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "model/arch.h"
#include "runtime/memory_check.h"

namespace gimbal {
void PullConsole::tell(const char* name, Json others) {
  if (to_ != To::Programs) return;
  Json line{{"event", name}};
  line.update(others);
  print_json(line, true);
  flush_output();
}

bool PullConsole::on(const PullEvent& e) {
  if (e.kind == PullEvent::Progress || e.kind == PullEvent::Checking) {
    if (!e.total) return !InterruptGuard::interrupted();
    if (to_ == To::People) bar(e.kind == PullEvent::Progress ? "fetching" : "checking", e);
    if (to_ == To::Programs && (now() - told_ > 0.2 || e.done == e.total)) {
      told_ = now();
      tell(name_of(e.kind), {{"file", e.file}, {"done", e.done}, {"total", e.total}});
    }
    return !InterruptGuard::interrupted();
  }
  bar_.reset(), bar_of_.clear();
  if (to_ == To::People) note("note: " + sentence(e));
  Json j{{"file", e.file}};
  if (e.total) j["done"] = e.done, j["total"] = e.total;
  if (!e.text.empty()) j["reason"] = e.text;
  tell(name_of(e.kind), std::move(j));
  return !InterruptGuard::interrupted();
}

void PullConsole::bar(const char* doing, const PullEvent& e) {
  const std::string of = format("{} {}", doing, shortened(e.file, 40));
  if (!bar_ || of != bar_of_) {
    bar_.reset();
    bar_.emplace(bar_of_ = of, true);
  }
  bar_->update(e.done, e.total);
}

FitReport fit_report(const ModelFile& source, EngineOptions options) {
  FitReport o{"", Json::object(), Done{}};
  const auto config = configure(*source.file);
  const auto arch = source.file->metadata().string("general.architecture");
  o.json["architecture"] = arch ? Json(std::string(*arch)) : Json();
  if (!config) o.fits = config.error();
  Engine engine(backend_registry(), std::move(options), {});
  auto planned = o.fits ? engine.plan(source) : Result<PlannedModel>(o.fits.error());
  if (!planned) o.fits = planned.error();
  if (planned) {
    const ModelPlan& b = planned->plan;
    o.fits = check_memory(*source.file, b);
    o.json["layers"] = b.config.layers, o.json["context"] = b.options.context;
    o.json["devices"] = Json::array();
    o.text = format("{}, {} layers, with {} positions of context", printable(b.config.arch), b.config.layers,
                    b.options.context);
    for (const MemoryUse& u : memory_uses(b)) {
      if (!u.device) continue;
      o.json["devices"].push_back(
          {{"device", u.device->id()}, {"total", u.sum.total()}, {"free", u.sum.free}});
      o.text += format(": {} of {} free on {}", human_bytes(u.sum.total()), human_bytes(u.sum.free),
                       u.device->id());
    }
  }
  if (!o.fits) {
    const Error e = worded(o.fits.error());
    const std::string why = e.code == Code::OutOfMemory && planned ? "it does not fit" : printable(e.message);
    o.text += format("{}{}{}", o.text.empty() ? "" : "; ", why,
                     e.remedy.empty() ? "" : format("\n  {}", printable(e.remedy, true)));
    o.json["remedy"] = e.remedy;
    if (e.code != Code::OutOfMemory) o.json["error"] = {{"code", name_of(e.code)}, {"message", e.message}};
  } else {
    o.text += "; it fits";
  }
  o.json["fits"] = bool(o.fits);
  return o;
}

}  // namespace gimbal
