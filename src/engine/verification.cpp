#include "engine/verification.h"

#include <algorithm>

#include "base/format.h"
#include "base/hash.h"
#include "base/json.h"
#include "device/reason.h"
#include "engine/machine_cache.h"
#include "runtime/model_check.h"

namespace gimbal {
namespace {

constexpr const char* kSubject = "verified";  // of the file in the cache folder

// The entry of a device: {"kernels": {name: {"cases", "wrong"}}, "models": {fingerprint: true}}.
Json known_of(const Device& d) { return MachineCache(kSubject).find(key_of(d)); }

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

// Whether a model of this shape passed its trial on the device.
bool is_kept(const Device& d, const std::string& fingerprint) {
  const Json known = known_of(d);
  return known.is_object() && known.contains("models") && known["models"].is_object() &&
         known["models"].contains(fingerprint);
}

// Identifies a model file by the properties that matter to kernels.
std::string fingerprint(const ModelSource& file) {
  Hash hash;
  for (const StoredTensor& t : file.tensors()) {
    hash.add(t.name).add(info(t.type).name);
    for (uint32_t i = 0; i < t.rank; i++) hash.add(t.dim[i]);
  }
  return format("{:016x}", hash.value());
}

Error wrong(std::string message) {
  return {Code::Failed, std::move(message), "", reason::kVerificationFailed};
}

}  // namespace

void Verifier::keep(const Device& d, const std::function<void(Json&)>& change) {
  MachineCache kept(kSubject);
  const Json key = key_of(d);
  Json entry = kept.find(key).is_object() ? kept.find(key) : Json::object();
  for (const char* part : {"kernels", "models"})
    if (!entry.contains(part) || !entry[part].is_object()) entry[part] = Json::object();
  change(entry);
  if (auto ok = kept.put(key, std::move(entry)); !ok) not_kept_ = ok.error();
}

Result<std::vector<Quarantined>> Verifier::wrong_kernels(const Stage& stage, bool anew) {
  std::vector<size_t> needed;
  for (const Bucket& b : stage.buckets)
    for (size_t k : kernels_of(b.choices))
      if (std::find(needed.begin(), needed.end(), k) == needed.end()) needed.push_back(k);
  return wrong_kernels(*stage.device, needed, anew);
}

Result<std::vector<Quarantined>> Verifier::wrong_kernels(const Device& d, const std::vector<size_t>& needed,
                                                         bool anew) {
  KernelVerdicts known;
  if (!anew) known = verdicts_of(known_of(d));
  const size_t before = known.size();
  size_t done = 0;
  auto progress = [&](const char*) { return !progress_ || progress_(d, done++, needed.size()); };
  if (auto ok = verify_kernels(d, needed, known, progress); !ok) return ok.error();
  if (done && progress_) progress_(d, needed.size(), needed.size());
  if (known.size() != before)
    keep(d, [&](Json& entry) {
      for (const auto& [name, v] : known) entry["kernels"][name] = {{"cases", v.cases}, {"wrong", v.wrong}};
    });
  std::vector<Quarantined> wrong = quarantined(known);
  for (Quarantined& q : wrong) q.device = d.id();
  return wrong;
}

bool Verifier::is_new(const Device& d, const ModelSource& file) const {
  return when_ == Verify::Always || (when_ == Verify::Auto && !is_kept(d, fingerprint(file)));
}

Status Verifier::check_layers(const ModelSource& file, const Device& d, const Device& host,
                              const RunOptions& run) const {
  if (!is_new(d, file)) return Done{};
  auto check = check_first_layers(file, d, host, run);
  if (check && check->passed()) return Done{};
  return check ? wrong(check->wrong) : check.error();
}

Status Verifier::try_out(Model& model, const ModelSource& file, const std::string& name) {
  std::vector<const Device*> fresh;
  for (const Stage& stage : model.plan().stages)
    if (is_new(*stage.device, file)) fresh.push_back(stage.device);
  if (fresh.empty()) return Done{};
  auto check = check_splits(model);
  if (!check) return check.error();
  if (!check->passed()) return wrong(format("{} on {}: {}", name, fresh[0]->id(), check->wrong));
  const std::string print = fingerprint(file);
  for (const Device* d : fresh) keep(*d, [&](Json& entry) { entry["models"][print] = name; });
  return Done{};
}

}  // namespace gimbal
