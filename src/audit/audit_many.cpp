#include "audit/audit_many.h"

#include "audit/certificate.h"
#include "base/clock.h"

namespace gimbal {

const char* name_of(Audited::Signature s) {
  constexpr const char* kNames[] = {"none", "valid", "invalid", "unchecked"};
  return kNames[size_t(s)];
}

void AuditMany::run(std::vector<Audited>& all) {
  for (Audited& one : all)
    if (!one.result) one.result = before_the_model(one);
  for (size_t i = 0; i < all.size(); i++)
    if (!all[i].result) check_like(all, i);
}

// What can be said without the model; nothing: go on.
std::optional<Result<AuditResult>> AuditMany::before_the_model(Audited& one) {
  if (auto no = check_signature(one)) return Result<AuditResult>(std::move(*no));
  if (one.certificate->prompt.tokens.empty() && plan_.prompt.empty())
    return Error{Code::Usage, "the certificate holds its prompt's digest only", "give the prompt's tokens",
                 "", "tokens"};
  return {};
}

std::optional<AuditResult> AuditMany::check_signature(Audited& one) {
  using enum Audited::Signature;
  const Certificate& c = *one.certificate;
  AuditResult no{.verdict = AuditResult::Verdict::Differs,
                 .subject = AuditResult::Subject::Signature,
                 .expected = plan_.signer.value_or(c.signature.key),
                 .found = c.signature.key};
  if (c.signature.value.empty()) {
    if (!plan_.signer) return {};
    no.found = "none", no.explanation = "the certificate is not signed";
    return no;
  }
  const auto fits = signature_fits(c);
  one.signature = !fits ? Unchecked : *fits ? Valid : Invalid;
  if (!fits) {
    if (!plan_.signer) return {};
    no.verdict = AuditResult::Verdict::CannotTell, no.explanation = fits.error().message;
    return no;
  }
  if (*fits && (!plan_.signer || *plan_.signer == c.signature.key)) return {};
  no.explanation = *fits ? "another key signed the certificate"
                         : "the signature is not of this content: something was changed after signing";
  return no;
}

// Checks the certificate `first` and all others of its model and settings, with one loading.
void AuditMany::check_like(std::vector<Audited>& all, size_t first) {
  const Certificate& c = *all[first].certificate;
  std::vector<size_t> same;
  for (size_t i = first; i < all.size(); i++)
    if (!all[i].result && model_of(*all[i].certificate) == model_of(c) &&
        all[i].certificate->settings == c.settings)
      same.push_back(i);
  const double start = now();
  if (auto ok = check_together(all, same); !ok)
    for (size_t i : same)
      if (!all[i].result) all[i].result = Result<AuditResult>(ok.error());
  const double seconds = now() - start;
  for (size_t i : same) all[i].seconds = seconds;
}

Status AuditMany::check_together(std::vector<Audited>& all, const std::vector<size_t>& which) {
  const Certificate& c = *all[which[0]].certificate;
  ModelFileOptions file = plan_.file;
  file.rope = c.settings.rope;
  auto source = plan_.open(model_of(c), file);
  if (!source) {
    Error e = source.error();
    if (!plan_.model && e.code == Code::NotFound) e.remedy = "name the model that the answer is of";
    return e;
  }
  auto identity = identity_of(*source);
  if (!identity) return identity.error();
  std::vector<AuditJob> jobs;
  std::vector<size_t> open;  // the jobs' certificates
  for (size_t i : which) {
    if (auto no = audit_identity(*all[i].certificate, *identity)) {
      all[i].result = Result<AuditResult>(std::move(*no));
      continue;
    }
    jobs.push_back({&*all[i].certificate, plan_.prompt}), open.push_back(i);
  }
  if (jobs.empty()) return Done{};
  EngineOptions options = plan_.engine;
  if (auto ok = set_audit_options(jobs, options.run); !ok) return ok;
  if (plan_.then) options.run.cache_positions = 0;
  Engine engine(registry_, std::move(options), events_);
  auto loaded = engine.load(*source);
  if (!loaded) return loaded.error();
  auto tokenizer = Tokenizer::create(source->file->metadata());
  if (!tokenizer) return tokenizer.error();
  LoadedModelPtr on = *loaded;  // another one after the loss of a device
  const double start = now();
  auto results = audit(jobs, *on->model, **tokenizer, plan_.how, engine.on_device_lost(on));
  const double seconds = now() - start;
  for (size_t k = 0; k < open.size(); k++)
    all[open[k]].result = std::move(results[k]), all[open[k]].compute_seconds = seconds;
  if (plan_.then) plan_.then(engine, on, **tokenizer);
  return Done{};
}

// A file is hashed once, whatever number of certificates name it.
Result<Certificate::Model> AuditMany::identity_of(const ModelFile& source) {
  if (auto known = identities_.find(source.path); known != identities_.end()) return known->second;
  auto made = certified_model(source, plan_.file.lora);
  if (made) identities_.emplace(source.path, *made);
  return made;
}

}  // namespace gimbal
