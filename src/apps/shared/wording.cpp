#include "apps/shared/wording.h"

#include "base/format.h"
#include "device/reason.h"
#include "fetch/store.h"
#include "program/place.h"

namespace gimbal {
namespace {

// A setting of the library and its option.
struct OptionOfField {
  std::string_view field, option;
};
constexpr OptionOfField kOptionOfField[] = {
    {"model", "MODEL"},
    {"sha256", "--sha256"},
    {"connections", "--connections"},
    {"backend", "--backend"},
    {"device", "--device"},
    {"backend_order", "--backend-order"},
    {"gpu_layers", "--gpu-layers"},
    {"split", "--split"},
    {"strict", "--strict"},
    {"allow_software_devices", "--allow-software-devices"},
    {"prefer_kernel", "--prefer-kernel"},
    {"numerics", "--numerics"},
    {"threads", "--threads"},
    {"cpu_variant", "--cpu-variant"},
    {"verify", "--verify"},
    {"packed", "--packed"},
    {"kernel_config", "--kernel-config"},
    {"context", "--ctx"},
    {"batch", "--batch"},
    {"cache_type", "--kv-type"},
    {"draft", "--draft"},
    {"temperature", "--temp"},
    {"top_k", "--top-k"},
    {"top_p", "--top-p"},
    {"min_p", "--min-p"},
    {"typical_p", "--typical-p"},
    {"repeat_penalty", "--repeat-penalty"},
    {"frequency_penalty", "--frequency-penalty"},
    {"presence_penalty", "--presence-penalty"},
    {"penalty_window", "--penalty-window"},
    {"stops", "--stop"},
    {"max_tokens", "--max-tokens"},
};

std::string option_of(std::string_view field) {
  for (const OptionOfField& o : kOptionOfField)
    if (o.field == field) return std::string(o.option);
  return std::string(field);
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
  for (const OptionOfField& o : kOptionOfField) {
    const std::string name = format("'{}'", o.field);
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), o.option);
  }
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
