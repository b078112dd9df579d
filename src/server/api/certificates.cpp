#include "server/api/certificates.h"

#include "audit/certificate.h"
#include "base/format.h"
#include "base/json.h"
#include "server/api/call.h"
#include "server/api/fields.h"
#include "server/api/text.h"

namespace gimbal::api {

Refused wrong_certificate_header(const http::Request& r) {
  const std::string* h = r.header(kCertificateHeader);
  if (!h || *h == "true" || *h == "false" || *h == "private") return {};
  return ApiError{400, format("the header X-Gimbal-Certificate must be true, false or private, not {}",
                              quoted_briefly(*h))};
}

std::optional<CertificateWish> certificate_wish(const http::Request& r, const Json& body) {
  using enum CertificateWish;
  if (const std::string* h = r.header(kCertificateHeader))
    return *h == "private" ? Private : *h == "true" ? Yes : No;
  const auto field = body.find("certificate");
  if (field == body.end() || field->is_null()) return {};
  return *field == "private" ? Private : *field == true ? Yes : No;
}

Refused no_certificate(const ServedModel& model, const std::string& digest) {
  if (digest.empty())
    return wrong_field("certificate",
                       "the digest of this model's file is unknown: name the model when the server starts");
  if (const std::string key = changed_arithmetic(model.file()); !key.empty())
    return wrong_field("certificate",
                       format("the server runs this model with another {} than its file has", key));
  if (!model.file().tensors().adapters().empty())
    return wrong_field(
        "certificate",
        "the model has LoRA adapters: `gimbal run --certificate` names them, the server does not");
  return {};
}

void Call::fill_certificate(Plan& p) {
  p.owner = owner;
  const auto wish = certificate_wish(request, body);
  p.certificate = wish.value_or(services.certificates.all);
  if (p.certificate == CertificateWish::No) return;
  p.model_digest = services.models.digest(p.model->id());
  Refused no = no_certificate(*p.model, p.model_digest);
  for (const GenerationRequest& r : p.choices)
    if (!r.pictures.empty()) no = wrong_field("certificate", "an answer to pictures has no certificate");
  if (no) {
    // A request that wants one gets the error; the others get their answer, and the reason.
    if (wish) p.refused = std::move(no);
    else note("the answer has no certificate: " + no->message);
    p.certificate = CertificateWish::No;
    return;
  }
  for (GenerationRequest& r : p.choices) r.certify = true;
  p.headers.push_back({kReceiptHeader, p.id});
}

Certified::Certified(const ServedModel& model, std::string digest, const GenerationRequest& r)
    : model_{model.id(), std::move(digest), model.file().file_bytes(), {}},
      prompt_(r.prompt),
      text_(r),
      grammar_(r.grammar) {
  const std::vector<Explanation> computed = model.explanations();
  if (!computed.empty())
    settings_ = {computed[0].context, cache_name(computed[0].kv_type, computed[0].kv_rotation.rotated),
                 computed[0].fast_kernels, rope_changes(model.file())};
}

Result<Json> Certified::certificate(const ServedModel& model, const GenerationEnd& end,
                                    const Making& making) const {
  std::vector<std::string> rows = rows_;
  if (!end.row.empty()) rows.push_back(end.row);
  Certificate c = certificate_of(model_, settings_, prompt_, text_, grammar_, tokens_, end.finish, rows);
  c.made.program = making.program;
  for (const DeviceUse& d : model.devices()) c.made.devices.push_back(d.device);
  c.made.drafts = end.drafted ? "drafts" : "";
  c.made.time = certificate_time();
  c.made.prompt_seconds = making.prompt_seconds, c.made.seconds = making.seconds;
  if (making.is_private) c.prompt.tokens.clear();
  if (!making.key_file.empty())
    if (auto ok = sign(c, making.key_file); !ok) return ok.error();
  return parse_json(to_text(c));
}

}  // namespace gimbal::api
