#include "apps/reports/stderr_sink.h"

#include <memory>
#include <optional>

#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "device/reason.h"

namespace gimbal {
namespace {

// A setting and the value that it was given, as it was typed.
std::string as_typed(const event::Unfulfilled& u) {
  const std::string_view field = u.field;
  const std::string option = with_options(format("'{}'", field)), value = printable(u.value);
  if (field == "gpu_layers") return format("{} {}: {}", option, value, u.message);
  if (field == "prefer_kernel")
    return format("{} '{}' {} (`gimbal kernels` lists them)", option, value, u.message);
  if (u.value == "true") return format("{} {}", option, u.message);
  return format("{} {} {}", option, value, u.message);
}

class Console {
 public:
  explicit Console(bool quiet) : quiet_(quiet) {}

  bool operator()(const Event& e) {
    if (const auto* p = std::get_if<event::Progress>(&e)) return progress(*p), true;
    bar_.reset();
    std::visit([this](const auto& what) { tell(what); }, e);
    return true;
  }

 private:
  void progress(const event::Progress& p) {
    const bool loading = p.stage == event::Progress::Loading;
    const char* doing = p.stage == event::Progress::Verifying ? "verifying" : "timing";
    const std::string what = loading ? "loading" : format("{} {} (first use)", doing, p.device);
    if (!bar_ || what != what_)
      bar_.emplace(what_ = what, !quiet_, loading ? Progress::Unit::Bytes : Progress::Unit::Kernels);
    bar_->update(p.done, p.total);
    if (p.done == p.total) bar_.reset();
  }

  void tell(const Fallback& f) {
    note("note: " + sentence(f) + (f.instead.empty() ? "" : format("; using {} instead", f.instead)));
  }
  // One line at the usual loudness: which GPU was found, or why none of those at hand is used. Nothing where
  // there is nothing to choose from.
  void tell(const event::Chosen& c) {
    if (quiet_ || !c.automatic || !c.opened.fallbacks.empty()) return;
    const Device& d = *c.opened.device;
    if (!is_host(d)) {
      const char* name = d.describe().name;
      note(format("{0} GPU detected, using {0} backend: {1}, {2}", display_name(d.backend()), d.id(),
                  printable(name ? name : "")));
      return;
    }
    std::string why;
    for (const Rejection& r : c.opened.rejected)
      if (r.reason != reason::kNotBuilt) why += "\n  " + printable(sentence(r));
    if (!why.empty()) note("No GPU acceleration available, using CPU backend" + why);
  }
  void tell(const event::Unfulfilled& u) {
    if (!quiet_ || !u.permission) note("note: " + as_typed(u));
  }
  void tell(const event::LongContext& l) {
    if (quiet_) return;
    note(
        format("note: --ctx {} is more than the {} positions that the model was trained on; its text may get "
               "worse beyond them",
               l.context, l.trained));
  }
  void tell(const event::Offloaded& o) {
    if (!quiet_ && o.layers) note(o.text());
  }
  void tell(const event::NotKept& n) {
    if (quiet_) return;
    note(format("note: the results of verification could not be saved: {}", printable(n.why.message)));
  }
  void tell(const event::Recovered& r) {
    note(format("note: {} was lost after {} ({}); continuing on {}", r.from, r.behind,
                printable(r.why.message), r.to));
  }
  void tell(const event::DraftsEnded& d) {
    note(format("note: drafting stopped: {}; the text stays the same", printable(d.why.message)));
  }
  void tell(const event::Progress&) {}

  bool quiet_;
  std::string what_;
  std::optional<Progress> bar_;
};

}  // namespace

std::string sentence(const Rejection& r) {
  std::string remedy = r.remedy;
  auto add = [&](const char* more) { remedy += (remedy.empty() ? "" : "; ") + std::string(more); };
  if (!r.seen.empty()) add("`gimbal backends` looks again");
  if (r.reason == reason::kProbeCrashed || r.reason == reason::kProbeTimeout)
    add("`gimbal backends` tries it again");
  return with_options(format("{}: {}", r.what, in_full(r.message, remedy)));
}

std::string sentence(const Fallback& f) {
  switch (f.kind) {
    case Fallback::Device:
      return printable(sentence(Rejection{f.what, f.why.reason, f.why.message, f.why.remedy}));
    case Fallback::Layers: return format("{}: {}", f.what, f.why.message);
    case Fallback::Weights:
      return format(
          "{} are not used: {}", f.what,
          in_full(printable(f.why.message), f.why.reason == std::string_view(reason::kPackedUnusable)
                                                ? "`gimbal pack` writes them again"
                                                : ""));
    case Fallback::Kernel: return format("{} is not used: {}", f.what, printable(f.why.message));
    case Fallback::Refused: break;
  }
  const bool verified = f.why.reason == std::string_view(reason::kVerificationFailed);
  return format("{} is not used: {}{}", f.what, verified ? "verification failed: " : "",
                printable(f.why.message));
}

std::vector<std::string> sentences(const std::vector<Fallback>& all) {
  std::vector<std::string> out;
  for (const Fallback& f : all) out.push_back(sentence(f));
  return out;
}
std::vector<std::string> sentences(const std::vector<Rejection>& all) {
  std::vector<std::string> out;
  for (const Rejection& r : all) out.push_back(sentence(r));
  return out;
}

std::string reason_of(const OpenedDevice& d) {
  return d.reason([](const Rejection& r) { return sentence(r); });
}

EventSink stderr_sink(bool quiet) {
  return [console = std::make_shared<Console>(quiet)](const Event& e) { return (*console)(e); };
}

}  // namespace gimbal
