#include "apps/commands/certificate_options.h"

#include <ctime>

#include "audit/signature.h"
#include "base/file.h"

namespace gimbal {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

void CertificateOptions::declare(Arguments& a) {
  a.text("--certificate", "FILE", "write what `gimbal audit` needs to check the answer on another machine",
         file_);
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
  Certificate c = certificate_of(std::move(*model), certified_settings(plan), prompt, settings, grammar,
                                 g.tokens, g.finish, g.rows);
  c.made.program = "gimbal " GIMBAL_VERSION;
  for (const DeviceUse& d : device_uses(plan)) c.made.devices.push_back(d.device);
  c.made.drafts = g.drafted_by, c.made.time = utc_now();
  c.made.prompt_seconds = g.prompt_seconds, c.made.seconds = g.generate_seconds;
  if (private_) c.prompt.tokens.clear();
  if (key_)
    if (auto ok = sign(c, *key_); !ok) return ok;
  return replace_file(*file_, to_text(c));
}

}  // namespace gimbal
