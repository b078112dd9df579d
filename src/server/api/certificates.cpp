#include "server/api/certificates.h"

#include "base/format.h"
#include "base/json.h"
#include "server/api/text.h"

namespace gimbal::api {

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

Certified::Certified(const ServedModel& model, std::string digest, const GenerationRequest& r)
    : model_{model.id(), std::move(digest), model.file().file_bytes(), {}},
      prompt_(r.prompt),
      text_(r),
      grammar_(r.grammar) {
  const std::vector<Explanation> computed = model.explanations();
  if (!computed.empty()) settings_ = {computed[0].context, computed[0].kv_type, computed[0].fast_kernels};
}

Json Certified::certificate(const ServedModel& model, const GenerationEnd& end, const std::string& program,
                            double prompt_seconds, double seconds) const {
  std::vector<std::string> rows = rows_;
  if (!end.row.empty()) rows.push_back(end.row);
  Certificate c = certificate_of(model_, settings_, prompt_, text_, grammar_, tokens_, end.finish, rows);
  c.made.program = program;
  for (const DeviceUse& d : model.devices()) c.made.devices.push_back(d.device);
  c.made.drafts = end.drafted ? "drafts" : "";
  c.made.time = iso_time(unix_time());
  c.made.prompt_seconds = prompt_seconds, c.made.seconds = seconds;
  return parse_json(to_text(c));
}

}  // namespace gimbal::api
