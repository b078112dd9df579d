#include "apps/first_use.h"

#include <algorithm>

#include "apps/kept.h"
#include "apps/terminal.h"
#include "base/format.h"
#include "conformance/verification.h"
#include "runtime/model_check.h"

namespace gimbal {
namespace {

constexpr const char* kSubject = "verified";  // of the file in the cache folder

// What is kept of a device: {"kernels": {name: {"cases", "wrong"}}, "models": {fingerprint: true}}.
Json known_of(const Device& d) { return Kept(kSubject).find(key_of(d)); }

KernelVerdicts verdicts_of(const Json& entry) {
  KernelVerdicts all;
  if (!entry.is_object() || !entry.contains("kernels") || !entry["kernels"].is_object()) return all;
  for (const auto& [name, v] : entry["kernels"].items()) {
    if (!v.is_object() || !v.contains("cases") || !v["cases"].is_number_integer() || !v.contains("wrong") ||
        !v["wrong"].is_string())
      continue;  // damaged: as if it had never been checked
    all[name] = {v["wrong"].get<std::string>().empty(), v["cases"].get<int>(), v["wrong"].get<std::string>()};
  }
  return all;
}

// A cache that cannot be written costs a second at every start: told once, and only where it can be helped.
void keep(const Device& d, const std::function<void(Json&)>& change, bool quiet) {
  Kept kept(kSubject);
  const Json key = key_of(d);
  Json entry = kept.find(key).is_object() ? kept.find(key) : Json::object();
  for (const char* part : {"kernels", "models"})
    if (!entry.contains(part) || !entry[part].is_object()) entry[part] = Json::object();
  change(entry);
  static bool told = false;
  if (auto ok = kept.put(key, std::move(entry)); !ok && !quiet && !told) {
    note(format("note: what was verified could not be kept for the next time: {}",
                printable(ok.error().message)));
    told = true;
  }
}

// Whether a model of this shape was tried out on the device.
bool is_kept(const Device& d, const std::string& fingerprint) {
  const Json known = known_of(d);
  return known.is_object() && known.contains("models") && known["models"].is_object() &&
         known["models"].contains(fingerprint);
}

// Checks the kernels of one part that nothing is known of; adds those that may not be used to `out`.
Status verify(const Part& part, bool anew, bool quiet, std::vector<Quarantined>& out) {
  const Device& d = *part.device;
  KernelVerdicts known;
  if (!anew) known = verdicts_of(known_of(d));
  std::vector<size_t> needed;
  for (const Bucket& b : part.buckets)
    for (size_t k : kernels_of(b.choices))
      if (std::find(needed.begin(), needed.end(), k) == needed.end()) needed.push_back(k);
  const size_t before = known.size();
  Progress bar(format("verifying {} (first use)", d.id()), !quiet, Progress::Unit::Kernels);
  size_t done = 0;
  auto ok =
      verify_kernels(d, needed, known, [&](const char*) { return bar.update(done++, needed.size()), true; });
  if (!ok) return ok.error();
  if (known.size() != before)
    keep(
        d,
        [&](Json& entry) {
          for (const auto& [name, v] : known)
            entry["kernels"][name] = {{"cases", v.cases}, {"wrong", v.wrong}};
        },
        quiet);
  for (Quarantined& q : quarantined(known)) out.push_back(std::move(q));
  return Done{};
}

// Names a model file by what its kernels see of it.
std::string fingerprint(const Gguf& file) {
  uint64_t hash = 1469598103934665603u;  // FNV-1a
  auto add = [&](std::string_view bytes) {
    for (unsigned char c : bytes) hash = (hash ^ c) * 1099511628211u;
  };
  for (const GgufTensor& t : file.tensors()) {
    add(t.name), add(info(t.type).name);
    for (uint32_t i = 0; i < t.rank; i++) add(format("x{}", t.dim[i]));
  }
  return format("{:016x}", hash);
}

constexpr const char* kReport = "`gimbal verify` prints a report for a bug report";

bool is_known(const std::vector<Quarantined>& all, const std::string& kernel) {
  return std::any_of(all.begin(), all.end(), [&](const Quarantined& q) { return q.kernel == kernel; });
}

// A plan without what gives wrong numbers: each attempt may find more that must be left out.
class Verification {
 public:
  Verification(EngineOptions options, RunOptions run, bool quiet)
      : options_(std::move(options)), run_(std::move(run)), quiet_(quiet) {}

  Result<PlannedModel> plan(ModelFile source) {
    for (bool anew = options_.verify == "always";; anew = false) {
      auto planned = plan_model(std::move(source), options_, run_, quiet_);
      if (!planned) {
        // Without the quarantined kernels the device does not compute this model: so another one must.
        if (planned.error().code != Code::Unsupported || run_.kernels.quarantined.empty() || device_.empty())
          return planned.error();
        if (auto ok = refuse(std::exchange(device_, ""), planned.error()); !ok) return ok.error();
        continue;
      }
      device_ = planned->opened.device->id();
      auto right = examine(*planned, anew);
      if (!right) return right.error();
      if (*right) {
        std::vector<std::string>& all = planned->opened.fallbacks;
        all.insert(all.end(), told_.begin(), told_.end());
        return planned;
      }
      source = std::move(planned->source);
    }
  }

 private:
  // False when something was found that the next plan must leave out.
  Result<bool> examine(const PlannedModel& p, bool anew) {
    const size_t before = run_.kernels.quarantined.size();
    for (const Part& part : p.blueprint.parts) {
      std::vector<Quarantined> found;
      if (auto ok = verify(part, anew, quiet_, found); !ok) {
        if (ok.error().code != Code::DeviceLost) return ok.error();
        if (auto refused = refuse(part.device->id(), ok.error()); !refused) return refused.error();
        return false;
      }
      for (Quarantined& q : found) {
        if (is_known(run_.kernels.quarantined, q.kernel)) continue;
        if (auto ok = tell(format("{} is not used: {}", q.kernel, printable(q.why))); !ok) return ok.error();
        run_.kernels.quarantined.push_back(std::move(q));
      }
    }
    if (run_.kernels.quarantined.size() != before) return false;
    for (const Part& part : p.blueprint.parts) {
      if (std::string(part.device->backend()) == "cpu" || is_tried(*part.device, *p.source.file)) continue;
      EngineOptions host;
      host.backend = "cpu", host.strict = true, host.threads = options_.threads;
      auto cpu = gimbal::open_device(host, true);
      if (!cpu) continue;  // a program without the CPU backend has nothing to compare with
      auto check = check_first_layers(*p.source.file, *part.device, *cpu->device, run_);
      if (check && check->passed()) continue;
      // Both at once may be more than a device holds that only takes a part of the model.
      if (!check && check.error().code == Code::OutOfMemory) continue;
      const Error why = check ? Error{Code::Failed, check->wrong, kReport} : check.error();
      if (auto ok = refuse(part.device->id(), why); !ok) return ok.error();
      return false;
    }
    return true;
  }

  bool is_tried(const Device& d, const Gguf& file) const {
    return options_.verify == "auto" && is_kept(d, fingerprint(file));
  }

  Status refuse(const std::string& device, const Error& why) {
    auto ok = tell(format("{} is not used: verification failed: {}", device, printable(why.message)));
    if (ok) options_.refused.emplace_back(device, why);
    return ok;
  }

  Status tell(std::string what) {
    if (options_.strict) return Error{Code::NoBackend, "--strict: " + what, kReport};
    note("note: " + what);
    told_.push_back(std::move(what));
    return Done{};
  }

  EngineOptions options_;
  RunOptions run_;
  const bool quiet_;
  std::string device_;  // of the last plan
  std::vector<std::string> told_;
};

}  // namespace

Result<PlannedModel> plan_verified(ModelFile&& source, const EngineOptions& options, const RunOptions& run,
                                   bool quiet) {
  if (options.verify == "never") return plan_model(std::move(source), options, run, quiet);
  return Verification(options, run, quiet).plan(std::move(source));
}

Status try_out(Model& model, const ModelFile& source, const EngineOptions& options, bool quiet) {
  if (options.verify == "never") return Done{};
  const std::string print = fingerprint(*source.file);
  std::vector<const Device*> fresh;
  for (const Part& part : model.blueprint().parts)
    if (options.verify == "always" || !is_kept(*part.device, print)) fresh.push_back(part.device);
  if (fresh.empty()) return Done{};
  auto check = check_splits(model);
  if (!check) return check.error();
  if (!check->passed())
    return Error{Code::Failed, format("{} on {}: {}", source.name, fresh[0]->id(), check->wrong), kReport};
  for (const Device* d : fresh)
    keep(
        *d, [&](Json& entry) { entry["models"][print] = source.name; }, quiet);
  return Done{};
}

}  // namespace gimbal
