#include "audit/certificate.h"

#include <algorithm>
#include <ctime>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/sha256.h"
#include "runtime/text_fields.h"

namespace gimbal {

template <class IO, FieldsOf<Certificate::Adapter> S>
void fields(IO& io, S& a) {
  io("sha256", a.sha256), io("scale", a.scale);
}
template <class IO, FieldsOf<Certificate::Model> S>
void fields(IO& io, S& m) {
  io("name", m.name), io("sha256", m.sha256), io("bytes", m.bytes), io("adapters", m.adapters);
}
template <class IO, FieldsOf<RopeChange> S>
void fields(IO& io, S& c) {
  io("key", c.key), io("text", c.text), io("number", c.number);
}
template <class IO, FieldsOf<Certificate::Settings> S>
void fields(IO& io, S& s) {
  io("context", s.context), io("cache_type", s.cache_type), io("fast_kernels", s.fast_kernels);
  io("rope", s.rope);
}
template <class IO, FieldsOf<Certificate::Prompt> S>
void fields(IO& io, S& p) {
  io("tokens", p.tokens), io("sha256", p.sha256);
}
template <class IO, FieldsOf<TextSettings> S>
void fields(IO& io, S& t) {
  text_fields(io, t);
}
template <class IO, FieldsOf<Certificate::Origin> S>
void fields(IO& io, S& o) {
  io("parent", o.parent), io("tokens", o.tokens), io("kept", o.kept);
}
template <class IO, FieldsOf<Certificate::AnswerPart> S>
void fields(IO& io, S& a) {
  io("tokens", a.tokens), io("finish", a.finish);
}
template <class IO, FieldsOf<Certificate::Logits> S>
void fields(IO& io, S& l) {
  io("rows", l.rows), io("chain", l.chain);
}
template <class IO, FieldsOf<Certificate::Made> S>
void fields(IO& io, S& m) {
  io("program", m.program), io("devices", m.devices), io("drafts", m.drafts), io("time", m.time);
  io("prompt_seconds", m.prompt_seconds), io("seconds", m.seconds);
}
template <class IO, FieldsOf<Certificate::Signature> S>
void fields(IO& io, S& s) {
  io("key", s.key), io("value", s.value);
}

namespace {

// All members but the signature, and the version, which is read before them.
template <class IO, FieldsOf<Certificate> S>
void content(IO& io, S& c) {
  io("arithmetic", c.arithmetic), io("model", c.model), io("settings", c.settings), io("prompt", c.prompt);
  io("text", c.text), io("grammar", c.grammar);
  if (c.version > 1) io("origin", c.origin);
  io("answer", c.answer), io("logits", c.logits);
  io("made", c.made);
}

Json json_of(const Certificate& c) {
  JsonWriter io;
  io("certificate", c.version);
  content(io, c);
  return std::move(io.to);
}

Error wrong(const std::string& why) { return {Code::Malformed, "the certificate " + why, ""}; }

bool is_hex(std::string_view s, size_t digits) {
  return s.size() == digits && s.find_first_not_of("0123456789abcdef") == s.npos;
}

Status check_origin(const Certificate& c) {
  const Certificate::Origin& o = c.origin;
  if (c.version > 1 && !is_hex(o.parent, 64)) return wrong("has an origin that is not 64 hexadecimal digits");
  if (o.tokens < 0 || (o.kept != 0 && o.kept != o.tokens) || size_t(o.kept) > c.answer.tokens.size())
    return wrong(format("keeps {} of {} tokens of its origin, and its answer has {}", o.kept, o.tokens,
                        c.answer.tokens.size()));
  return Done{};
}

}  // namespace

void RowChain::add(std::string_view digest) {
  rows_ += digest.substr(0, kShort);
  Sha256 sha;
  sha.add(chain_), sha.add(digest);
  chain_ = sha.hex();
}

std::string prompt_digest(std::span<const Token> tokens) {
  Sha256 sha;
  sha.add({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
  return sha.hex();
}

std::string changed_arithmetic(const ModelSource& file) {
  const std::string rope =
      std::string(file.metadata().string("general.architecture").value_or("")) + ".rope.";
  for (const std::string& key : file.changed())  // a prompt is tokens, whatever template made it
    if (key != "tokenizer.chat_template" && !key.starts_with(rope)) return key;
  return {};
}

Certificate::Settings certified_settings(const ModelPlan& plan, const ModelSource& file) {
  return {plan.options.context, cache_name(info(plan.options.cache_type).name, plan.rotation.rotated),
          plan.options.kernels.allow_fast, rope_changes(file)};
}

Certificate certificate_of(Certificate::Model model, Certificate::Settings settings,
                           std::span<const Token> prompt, const TextSettings& text, std::string grammar,
                           std::span<const Token> answer, Finish finish, std::span<const std::string> rows) {
  Certificate c;
  c.model = std::move(model);
  c.settings = std::move(settings);
  c.prompt = {{prompt.begin(), prompt.end()}, prompt_digest(prompt)};
  c.text = text, c.grammar = std::move(grammar);
  c.answer = {{answer.begin(), answer.end()}, name_of(finish)};
  RowChain chain;
  for (const std::string& row : rows) chain.add(row);
  c.logits = {chain.rows(), chain.chain()};
  return c;
}

std::string certificate_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string canonical_text(const Certificate& c) { return dump(json_of(c)); }

std::string certificate_digest(const Certificate& c) {
  Sha256 sha;
  sha.add(canonical_text(c));
  return sha.hex();
}

std::string to_text(const Certificate& c) {
  Json j = json_of(c);
  if (!c.signature.value.empty()) j["signature"] = JsonWriter::json(c.signature);
  return dump(j) + "\n";
}

Result<Certificate> read_certificate(std::string_view text) {
  const Json j = parse_json(text);
  if (!j.is_object()) return wrong("is no JSON object, or is cut off");
  Certificate c;
  JsonReader io(j, "the certificate");
  io("certificate", c.version);
  if (!io.problem().empty())
    return Error{Code::Malformed, io.problem(), "give a file that gimbal wrote as a certificate"};
  if (c.version < 1 || c.version > Certificate::kVersion)
    return Error{Code::Unsupported,
                 format("the certificate has format {}, and this build reads 1 to {}", c.version,
                        Certificate::kVersion),
                 "use a build of gimbal that reads it"};
  content(io, c);
  if (j.contains("signature")) io("signature", c.signature);
  if (!io.problem().empty()) return Error{Code::Malformed, io.problem(), ""};
  if (!is_hex(c.model.sha256, 64) || !is_hex(c.prompt.sha256, 64) || !is_hex(c.logits.chain, 64))
    return wrong("has a digest that is not 64 hexadecimal digits");
  if (auto ok = check_origin(c); !ok) return ok.error();
  if (!is_hex(c.logits.rows, 8 * c.rows()))
    return wrong(format("has {} digits of rows; {} tokens that end by '{}' have {}", c.logits.rows.size(),
                        c.answer.tokens.size() - c.first_row(), c.answer.finish, 8 * c.rows()));
  if (!c.prompt.tokens.empty() && prompt_digest(c.prompt.tokens) != c.prompt.sha256)
    return wrong("has a prompt whose digest is another one: its tokens were changed");
  return c;
}

}  // namespace gimbal
