#include "apps/toolkit/exit_code.h"

#include "base/format.h"
#include "device/reason.h"
#include "engine/settings_table.h"
#include "fetch/store.h"
#include "program/place.h"
#include "runtime/sampling_table.h"

namespace gimbal {
namespace {

// A setting of the library and its option, of those that are in no table of settings.
struct OptionOfField {
  std::string_view field, option;
};
constexpr OptionOfField kOptionOfField[] = {
    {"model", "MODEL"},         {"sha256", "--sha256"},   {"connections", "--connections"},
    {"draft", "--draft"},       {"stops", "--stop"},      {"max_tokens", "--max-tokens"},
    {"tls_cert", "--tls-cert"}, {"tls_key", "--tls-key"},
};

// "--threads" of "-t,--threads".
std::string_view long_name(std::string_view names) {
  names.remove_prefix(names.find("--"));
  return names.substr(0, names.find(','));
}

// Calls visit(field, option) for each setting that has an option.
template <class Visit>
void each_option(const Visit& visit) {
  for (const OptionOfField& o : kOptionOfField) visit(o.field, o.option);
  for (const SamplingSetting& s : kSamplingSettings)
    if (s.option) visit(s.field, s.option);
  for (const EngineSetting& s : kEngineSettings)
    if (s.option) visit(s.field, long_name(s.option));
}

std::string option_of(std::string_view field) {
  std::string found(field);
  each_option([&](std::string_view name, std::string_view option) {
    if (name == field) found = option;
  });
  return found;
}

// What to type for a failure of this kind, behind the changes that would help.
struct Hint {
  std::string_view reason, remedy;
};
constexpr Hint kHints[] = {
    {kNoKernel, "`gimbal kernels` lists what each device computes"},
    {reason::kNoSuchModel,
     "`gimbal list` shows what was found; $GIMBAL_MODELS names more folders to look into; `gimbal pull "
     "hf.co/OWNER/REPO` fetches one"},
    {reason::kNotFetched, "`gimbal pull` does"},
    {reason::kPackedUnusable, "`gimbal pack` writes it anew"},
    {reason::kVerificationFailed, "`gimbal verify` prints a report for a bug report"},
};

}  // namespace

std::string with_options(std::string text) {
  each_option([&](std::string_view field, std::string_view option) {
    const std::string name = format("'{}'", field);
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), option);
  });
  return text;
}

namespace {

std::string to_do(const Change& c) {
  const std::string option = option_of(c.field);
  if (std::string_view(c.field) == "strict")
    return format("leave {} out{}{}", option, c.effect.empty() ? "" : " ", c.effect);
  if (std::string_view(c.field) == "model") return format("did you mean '{}'?", c.value);
  if (c.value == "true") return format("{} {}", option, c.effect.empty() ? "allows it" : c.effect);
  if (c.value.empty() && c.effect.empty()) return format("leave {} out", option);
  return format("{}{}{}{}{}", option, c.value.empty() ? "" : " ", c.value, c.effect.empty() ? "" : " ",
                c.effect);
}

}  // namespace

Error worded(const Error& e) {
  Error out = e;
  out.changes.clear();
  out.message = with_options(e.message), out.remedy = with_options(e.remedy);
  std::string changes;
  for (const Change& c : e.changes) {
    if (std::string_view(c.field) == "strict") out.message = "--strict: " + out.message;
    changes += (changes.empty() ? "" : "; ") + to_do(c);
  }
  if (e.field == std::string_view("cpu_variant") && out.remedy.empty())
    out.remedy = "`gimbal backends` shows what this CPU has";
  auto add = [&](const std::string& more) {
    if (!more.empty()) changes += (changes.empty() ? "" : "; ") + more;
  };
  add(out.remedy);
  for (const Hint& h : kHints)
    if (h.reason == e.reason) add(std::string(h.remedy));
  if (e.code == Code::NoBackend && changes.find('`') == std::string::npos) add("see `gimbal backends`");
  if (e.code == Code::OutOfMemory && out.remedy.rfind("another device", 0) == 0)
    changes += ": `gimbal backends` shows it";
  out.remedy = std::move(changes);
  return out;
}

}  // namespace gimbal
