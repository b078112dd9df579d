#include "apps/commands/certificate_input.h"

#include "apps/commands/open_model.h"
#include "apps/toolkit/terminal.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/settings_table.h"

namespace gimbal {
namespace {

constexpr uint64_t kMaxBytes = 64 << 20;  // of a certificate

}  // namespace

void CertificateInput::declare(Arguments& a) {
  a.text("-m,--model", "MODEL", "the model (default: the one that the certificate names)", model_);
  a.text("--tokens", "IDS", "the prompt as token ids, for a certificate that has its digest only", tokens_);
  a.text("--key", "HEX", "accept only certificates that this Ed25519 key signed", key_);
  gimbal::declare(a, engine_, Needs::Device);
  for (const EngineSetting& s : kEngineSettings)
    if (std::string_view(s.field) == "lora" || std::string_view(s.field) == "kernel_config")
      gimbal::declare(a, s, engine_);
}

Result<AuditPlan> CertificateInput::plan(bool quiet) {
  auto engine = engine_options(engine_);
  if (!engine) return engine.error();
  AuditPlan plan{
      .open = [this, quiet](const std::string& name, const ModelFileOptions& options) -> Result<ModelFile> {
        auto source = open_model(name, engine_, quiet);
        return source && !options.rope.empty() ? open_model_file(name, options) : std::move(source);
      },
      .file = file_options(engine_),
      .model = model_,
      .signer = key_,
      .engine = std::move(*engine)};
  if (!tokens_) return plan;
  auto ids = parse_ids("--tokens", *tokens_);
  if (!ids) return ids.error();
  plan.prompt = std::move(*ids);
  return plan;
}

Error CertificateInput::worded(Error e) const {
  if (std::string_view(e.field) == "tokens") e.remedy = "give the prompt as --tokens IDS";
  if (e.code == Code::NotFound && !model_ && !e.remedy.empty()) e.remedy += ", as -m MODEL";
  return e;
}

void read_certificates(const std::string& file, std::vector<Audited>& to) {
  auto text = read_file(file, kMaxBytes);
  const Json j = text ? parse_json(*text) : Json();
  const auto add = [&](std::string name, const Result<std::string>& one) {
    Audited& item = to.emplace_back(Audited{std::move(name)});
    auto c = one ? read_certificate(*one) : Result<Certificate>(one.error());
    if (c) item.certificate = std::move(*c);
    else item.result = Result<AuditResult>(c.error());
  };
  if (!j.is_object() || !j.contains("certificates") || !j["certificates"].is_array()) return add(file, text);
  const Json& all = j["certificates"];
  for (size_t i = 0; i < all.size(); i++)
    add(all.size() == 1 ? file : format("{}#{}", file, i + 1), dump(all[i]));
}

void note_unchecked_signatures(const std::vector<Audited>& all) {
  for (const Audited& one : all)
    if (one.signature == Audited::Signature::Unchecked && *one.result)
      note(printable(one.name) + ": the signature was not checked, because OpenSSL 3 is missing");
}

}  // namespace gimbal
