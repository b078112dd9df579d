// gimbal audit: checks certificates of answers (docs/audit.md).
#include "audit/audit.h"

#include <random>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/tell.h"
#include "apps/toolkit/json.h"
#include "apps/toolkit/terminal.h"
#include "audit/signature.h"
#include "base/clock.h"
#include "base/file.h"
#include "engine/engine.h"
#include "engine/settings_table.h"

namespace gimbal {
namespace {

constexpr uint64_t kMaxBytes = 64 << 20;  // of a certificate

class Audit final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positionals("CERTIFICATE", "files of `gimbal run --certificate`, or receipts of `gimbal serve`",
                  files_);
    a.text("-m,--model", "MODEL", "the model (default: the one that the certificate names)", model_);
    a.whole("--sample", "N", "check N positions of the answer, drawn at random, in place of all", sample_, 1,
            1 << 30);
    a.whole("--seed", "N", "seed of that draw (default: a new one)", seed_, uint64_t(0), UINT64_MAX);
    a.text("--tokens", "IDS", "the prompt as token ids, for a certificate that has its digest only", tokens_);
    a.text("--key", "HEX", "accept only certificates that this Ed25519 key signed", key_);
    gimbal::declare(a, engine_, Needs::Device);
    for (const EngineSetting& s : kEngineSettings)
      if (std::string_view(s.field) == "lora") gimbal::declare(a, s, engine_);
    a.example("gimbal run -p \"Once upon a time\" --certificate answer.json");
    a.example("gimbal audit answer.json");
    a.example("gimbal audit answer.json -m model.gguf --sample 16");
  }

  Result<int> run() override {
    if (files_.empty())
      return Error{Code::Usage, "there is no certificate to check", "give a file: gimbal audit answer.json"};
    if (!seed_) seed_ = std::random_device()();
    if (tokens_) {
      auto ids = parse_ids("--tokens", *tokens_);
      if (!ids) return ids.error();
      prompt_ = std::move(*ids);
    }
    std::vector<Item> items;
    for (const std::string& file : files_) add_items(file, items);
    several_ = items.size() > 1;
    int worst = kDone;
    Json all = Json::array();
    for (const auto& [file, text] : items) {
      const double start = now();
      signed_ = "none";
      auto result = text ? check(*text) : Result<AuditResult>(text.error());
      if (!result && !several_) return result.error();
      const int code = result ? exit_of(result->verdict) : exit_code(result.error().code);
      worst = std::max(worst, code);
      if (json)
        all.push_back(result ? json_of(file, *result, now() - start)
                             : Json{{"certificate", file}, {"error", result.error().message}});
      else
        print(file_prefix(file) +
              (result ? text_of(*result, now() - start) : "error: " + printable(result.error().message)) +
              "\n");
    }
    if (json) print_json(all.size() == 1 ? all[0] : all);
    return worst;
  }

 private:
  using Verdict = AuditResult::Verdict;

  static int exit_of(Verdict v) {
    return v == Verdict::Same ? kDone : v == Verdict::Differs ? kFailed : kBadModel;
  }

  struct Item {
    std::string name;
    Result<std::string> text;
  };
  // A file has one certificate, or is a server's receipt with those of an answer's choices.
  static void add_items(const std::string& file, std::vector<Item>& to) {
    auto text = read_file(file, kMaxBytes);
    const Json j = text ? parse_json(*text) : Json();
    if (!j.is_object() || !j.contains("certificates") || !j["certificates"].is_array())
      return to.push_back({file, std::move(text)});
    const Json& all = j["certificates"];
    for (size_t i = 0; i < all.size(); i++)
      to.push_back({all.size() == 1 ? file : format("{}#{}", file, i + 1), dump(all[i])});
  }

  Result<AuditResult> check(const std::string& text) {
    auto c = read_certificate(text);
    if (!c) return c.error();
    if (auto no = check_signature(*c); no) return *no;
    if (c->prompt.tokens.empty() && prompt_.empty())
      return Error{Code::Usage, "the certificate holds its prompt's digest only",
                   "give the prompt as --tokens IDS"};
    auto source = open_model(model_.value_or(c->model.name), engine_, quiet);
    if (!source) {
      Error e = source.error();
      if (!model_ && e.code == Code::NotFound)
        e.remedy = "name the model that the answer is of: gimbal audit FILE -m MODEL";
      return e;
    }
    auto identity = certified_model(*source, file_options(engine_).lora);
    if (!identity) return identity.error();
    if (auto no = audit_identity(*c, *identity)) return *no;
    if (auto ok = load(*source, *c); !ok) return ok.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    auto session = Session::create(*loaded_->model);
    if (!session) return session.error();
    (*session)->on_device_lost(running_->on_device_lost(loaded_));
    Progress bar("checking", !quiet && !json, Progress::Unit::Tokens);
    return audit(
        *c, **session, **tokenizer,
        {.prompt = prompt_, .sample = sample_, .seed = *seed_, .progress = [&](size_t done, size_t total) {
           bar.update(done, total);
         }});
  }

  // The model stays loaded for the next certificate of the same model and settings.
  Status load(const ModelFile& source, const Certificate& c) {
    const std::string wanted = format("{} {} {}", c.model.sha256, c.settings.context, c.settings.cache_type);
    if (loaded_ && wanted == loaded_for_) return Done{};
    auto options = engine_options(engine_);
    if (!options) return options.error();
    if (auto ok = set_audit_options(c, options->run); !ok) return ok;
    loaded_.reset();
    running_ = std::make_unique<Engine>(backend_registry(), std::move(*options), tell_on_stderr(quiet));
    auto loaded = running_->load(source);
    if (!loaded) return loaded.error();
    loaded_ = std::move(*loaded), loaded_for_ = wanted;
    return Done{};
  }

  std::optional<AuditResult> check_signature(const Certificate& c) {
    AuditResult no{.verdict = Verdict::Differs,
                   .subject = AuditResult::Subject::Signature,
                   .expected = key_.value_or(c.signature.key),
                   .found = c.signature.key};
    if (c.signature.value.empty()) {
      if (!key_) return {};
      no.found = "none", no.explanation = "the certificate is not signed";
      return no;
    }
    auto fits = signature_fits(c);
    signed_ = !fits ? "unchecked" : *fits ? "valid" : "invalid";
    signer_ = c.signature.key;
    if (!fits) {
      if (!key_) return note(fits.error().message + ": the signature was not checked"), std::nullopt;
      no.verdict = Verdict::CannotTell, no.explanation = fits.error().message;
      return no;
    }
    if (*fits && (!key_ || *key_ == c.signature.key)) return {};
    no.explanation = *fits ? "another key signed the certificate"
                           : "the signature is not of this content: something was changed after signing";
    return no;
  }

  std::string file_prefix(const std::string& file) const { return several_ ? printable(file) + ": " : ""; }

  std::string text_of(const AuditResult& r, double seconds) const {
    const std::string by = signed_ == "valid" ? format("; signed by {}", signer_) : "";
    if (r.verdict == Verdict::Same)
      return format("same: {} {} of logits and the tokens chosen from them, checked in {:.2f} s{}", r.rows,
                    r.rows == 1 ? "row" : "rows", seconds, by);
    return format("{}{}: {}\n  expected {}\n  found    {}",
                  r.verdict == Verdict::Differs ? "differs" : "cannot tell",
                  r.position >= 0 ? format(" at token {} of the answer", r.position) : "", r.explanation,
                  printable(r.expected), printable(r.found));
  }

  Json json_of(const std::string& file, const AuditResult& r, double seconds) const {
    Json j{{"certificate", file},
           {"verdict", name_of(r.verdict)},
           {"rows", r.rows},
           {"signature", signed_},
           {"seconds", seconds}};
    if (signed_ != "none") j["key"] = signer_;
    if (r.verdict == Verdict::Same) return j;
    j["subject"] = name_of(r.subject);
    if (r.position >= 0) j["position"] = r.position;
    j["expected"] = r.expected, j["found"] = r.found, j["explanation"] = r.explanation;
    return j;
  }

  std::vector<std::string> files_;
  std::optional<std::string> model_, tokens_, key_;
  std::optional<int> sample_;
  std::optional<uint64_t> seed_;
  std::vector<Token> prompt_;
  CommonOptions engine_;
  std::unique_ptr<Engine> running_;
  LoadedModelPtr loaded_;
  std::string loaded_for_, signed_, signer_;
  bool several_ = false;  // certificates
};

}  // namespace

std::unique_ptr<Command> make_audit() { return std::make_unique<Audit>(); }

}  // namespace gimbal
