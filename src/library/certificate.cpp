// Certificates of the public library.
#include <random>

#include "library/internal.h"

namespace gimbal::v1 {

struct Certificate::Impl {
  own::Certificate own;
};

Certificate Access::certificate(own::Certificate c) {
  return Certificate(std::make_shared<const Certificate::Impl>(Certificate::Impl{std::move(c)}));
}
const own::Certificate& Access::own(const Certificate& c) { return c.impl_->own; }

Result<Certificate> Certificate::parse(std::string_view text) {
  auto c = gimbal::read_certificate(text);
  if (!c) return to_public(c.error());
  return Access::certificate(std::move(*c));
}

Result<Certificate> Certificate::read(const std::string& path) {
  constexpr uint64_t kMaxBytes = 64 << 20;
  auto text = gimbal::read_file(path, kMaxBytes);
  if (!text) return to_public(text.error());
  return parse(*text);
}

std::string Certificate::text() const { return gimbal::to_text(impl_->own); }

Status Certificate::write(const std::string& path) const {
  if (auto ok = gimbal::replace_file(path, text()); !ok) return to_public(ok.error());
  return Done{};
}

Certificate Certificate::without_prompt() const {
  own::Certificate c = impl_->own;
  c.prompt.tokens.clear(), c.signature = {};
  return Access::certificate(std::move(c));
}

Result<Certificate> Certificate::sign(const std::string& key_file) const {
  own::Certificate c = impl_->own;
  if (auto ok = gimbal::sign(c, key_file); !ok) return to_public(ok.error());
  return Access::certificate(std::move(c));
}

Result<bool> Certificate::verify() const {
  if (impl_->own.signature.value.empty()) return false;
  auto fits = gimbal::signature_fits(impl_->own);
  if (!fits) return to_public(fits.error());
  return *fits;
}

std::string Certificate::signer() const { return impl_->own.signature.key; }
std::string Certificate::model() const { return impl_->own.model.name; }
std::string Certificate::model_sha256() const { return impl_->own.model.sha256; }
std::vector<Token> Certificate::prompt() const { return impl_->own.prompt.tokens; }
std::vector<Token> Certificate::answer() const { return impl_->own.answer.tokens; }

Status Model::Impl::identify() {
  const std::lock_guard lock(identifying);
  if (identity) return Done{};
  auto made = gimbal::certified_model(loaded->source, adapters);
  if (!made) return to_public(made.error());
  identity = std::move(*made);
  return Done{};
}

Certificate Model::Impl::certificate(const LoadedModel& on, std::span<const Token> prompt,
                                     const gimbal::TextSettings& settings, std::string grammar,
                                     std::span<const Token> answer, gimbal::Finish finish,
                                     std::span<const std::string> rows) const {
  const gimbal::ModelPlan& plan = on.model->plan();
  own::Certificate c = gimbal::certificate_of(*identity, gimbal::certified_settings(plan, *on.source.file),
                                              prompt, settings, std::move(grammar), answer, finish, rows);
  c.made.program = "gimbal " GIMBAL_VERSION, c.made.time = gimbal::certificate_time();
  for (const DeviceUse& d : gimbal::device_uses(plan)) c.made.devices.push_back(d.device);
  return Access::certificate(std::move(c));
}

static Audit to_public(const gimbal::Result<gimbal::AuditResult>& r) {
  if (!r) {
    Audit failed;
    failed.verdict = Audit::CannotTell, failed.subject = "nothing";
    failed.error = to_public(r.error()), failed.explanation = failed.error->message;
    return failed;
  }
  static_assert(int(gimbal::AuditResult::Verdict::CannotTell) == int(Audit::CannotTell));
  return {Audit::Verdict(int(r->verdict)),
          gimbal::name_of(r->subject),
          r->position,
          r->expected,
          r->found,
          r->explanation,
          r->rows,
          {}};
}

Result<std::vector<Audit>> Engine::audit(std::span<const Certificate> certificates, const AuditOptions& o) {
  auto engine = gimbal::engine_options(impl_->options, {});
  if (!engine) return to_public(engine.error());
  AuditPlan plan;
  plan.open = [](const std::string& name, const ModelFileOptions& options) {
    return open_model_file(name, options);
  };
  for (const LoraAdapter& l : o.lora) plan.file.lora.push_back({l.path, l.scale});
  if (!o.model.empty()) plan.model = o.model;
  if (!o.signer.empty()) plan.signer = o.signer;
  plan.prompt = o.prompt, plan.engine = std::move(*engine);
  plan.how = {o.sample, o.seed ? *o.seed : std::random_device()(), o.on_progress};
  std::vector<Audited> all;
  for (const Certificate& c : certificates) all.emplace_back().certificate = Access::own(c);
  AuditMany(impl_->registry, std::move(plan), events_of(impl_->options)).run(all);
  std::vector<Audit> out;
  for (const Audited& one : all) out.push_back(to_public(*one.result));
  return out;
}

Result<Audit> Engine::audit(const Certificate& certificate, const AuditOptions& o) {
  auto all = audit(std::span(&certificate, 1), o);
  if (!all) return all.error();
  if ((*all)[0].error) return *(*all)[0].error;
  return std::move((*all)[0]);
}

}  // namespace gimbal::v1
