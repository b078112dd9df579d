#include "apps/commands/certificate_options.h"

#include "apps/toolkit/terminal.h"
#include "audit/certificate.h"
#include "base/file.h"

namespace gimbal {

void CertificateOptions::declare(Arguments& a, const char* names) {
  a.text(names, "FILE", "write what `gimbal audit` needs to check the answer on another machine", file_);
  a.text("--certificate-key", "FILE", "sign the certificate with this Ed25519 key (PEM)", key_);
  a.flag("--certificate-private", "leave the prompt's tokens out of the certificate; their digest stays",
         private_);
}

Status CertificateOptions::check() const {
  if (!file_ && (key_ || private_))
    return Error{Code::Usage,
                 format("{} belongs to a certificate, and there is none",
                        key_ ? "--certificate-key" : "--certificate-private"),
                 "add --certificate FILE"};
  return Done{};
}

Status CertificateOptions::write(const LoadedModel& loaded, const std::vector<Lora>& adapters,
                                 std::span<const Token> prompt, const GenerateSettings& settings,
                                 const std::string& grammar, const Generated& g) const {
  if (!file_) return Done{};
  auto model = certified_model(loaded.source, adapters);
  if (!model) return model.error();
  const ModelPlan& plan = loaded.model->plan();
  return write(certificate_of(std::move(*model), certified_settings(plan, *loaded.source.file), prompt,
                              settings, grammar, g.tokens, g.finish, g.rows),
               loaded, g);
}

Status CertificateOptions::write(Certificate c, const LoadedModel& loaded, const Generated& g) const {
  if (!file_) return Done{};
  const ModelPlan& plan = loaded.model->plan();
  c.made.program = "gimbal " GIMBAL_VERSION;
  for (const DeviceUse& d : device_uses(plan)) c.made.devices.push_back(d.device);
  c.made.drafts = g.drafted_by, c.made.time = certificate_time();
  c.made.prompt_seconds = g.prompt_seconds, c.made.seconds = g.generate_seconds;
  if (private_) c.prompt.tokens.clear();
  if (key_)
    if (auto ok = sign(c, *key_); !ok) return ok;
  return replace_file(*file_, to_text(c));
}

void ServedCertificateOptions::declare(Arguments& a) {
  a.section("Certificates");
  a.flag("--certificates",
         "write a certificate of each answer, for `gimbal audit`; GET /v1/receipts/ID has those of the last "
         "answers",
         all_);
  a.text("--certificate-dir", "DIR",
         "like --certificates, and store the receipts in this folder; they outlive the server", folder_);
  a.flag("--certificate-private", "like --certificates, without the prompts' tokens; their digests stay",
         private_);
  a.text("--certificate-key", "FILE", "sign all certificates with this Ed25519 key (PEM)", key_);
}

Status ServedCertificateOptions::apply(api::Services& to) const {
  using enum api::CertificateWish;
  to.certificates.all = private_ ? Private : all_ || folder_ ? Yes : No;
  if (key_) {
    Certificate trial;
    if (auto ok = sign(trial, *key_); !ok) return ok;
    to.certificates.key_file = *key_;
  }
  if (!folder_) return Done{};
  auto folder = api::CertificateFolder::open(
      *folder_, [](const Error& e) { note("a certificate is not stored: " + e.message); });
  if (!folder) return folder.error();
  to.receipts.keep_in(std::move(*folder));
  return Done{};
}

}  // namespace gimbal
