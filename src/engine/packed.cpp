#include "engine/packed.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/folders.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/machine_cache.h"
#include "runtime/packed_weights.h"

namespace gimbal {
namespace {

// Writing to a file, replacing it or changing its owner changes one of these.
Json key_of(const PackedFile& f) {
  const InputFile::State& s = f.state();
  return {{"path", f.path()}, {"device", s.device},     {"inode", s.inode},
          {"bytes", s.size},  {"modified", s.modified}, {"changed", s.changed}};
}

}  // namespace

std::vector<std::string> packed_places(const ModelFile& m) {
  if (m.path.empty()) return {};
  std::vector<std::string> all = {m.path + ".packed"};
  std::error_code e;
  const std::string absolute = std::filesystem::weakly_canonical(m.path, e).string();
  if (!cache_folder().empty() && !e)
    all.push_back(format("{}/packed/{:016x}.packed", cache_folder(), Hash().add(absolute).value()));
  return all;
}

Status check_once(const PackedFile& f, bool always) {
  MachineCache kept("packed");
  if (!always && kept.find(key_of(f)).is_object()) return Done{};
  if (auto ok = f.check_weights(); !ok) return ok;
  // If this cannot be saved, the next start reads the file again.
  (void)kept.put(key_of(f), Json::object());
  return Done{};
}

Result<std::string> pack_weights(const ModelFile& source, const ModelPlan& plan, bool in_cache,
                                 const WeightProgress& progress) {
  const std::vector<std::string> places = packed_places(source);
  if (places.empty())
    return Error{Code::Usage, "the model inside the program is in memory with it: there is nothing to pack",
                 ""};
  if (in_cache && places.size() < 2)
    return Error{Code::Usage, "there is no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path",
                 ""};
  const std::string& path = places[in_cache];
  std::error_code e;
  if (in_cache) std::filesystem::create_directories(std::filesystem::path(path).parent_path(), e);
  if (auto ok = write_packed(path, plan, *source.file, progress); !ok) return ok.error();
  auto file = PackedFile::open(path, source.file->reader().identity());
  if (!file) return file.error();
  if (auto ok = check_once(**file, true); !ok) return ok.error();
  return path;
}

// A fallback, or an error if the user requested them under strict, or experts that are read from them.
Status Loader::refuse_packed(PlannedModel& p, const std::string& path, const Error& why) {
  if (std::any_of(p.plan.stages.begin(), p.plan.stages.end(),
                  [](const Stage& s) { return s.reads_experts() && !s.packed; })) {
    Error refused = why;
    if (refused.field == std::string_view("experts_from_disk")) return refused;
    refused.message = format("experts are read from packed weights{}, which cannot be used: {}",
                             path.empty() ? "" : " " + gimbal::quoted(path), why.message);
    if (refused.remedy.empty()) refused.remedy = "pack the model first: `gimbal pack`";
    refused.field = "experts_from_disk";
    return refused;
  }
  Fallback f{Fallback::Weights,
             path.empty() ? "packed weights" : format("packed weights {}", gimbal::quoted(path)), "", why};
  if (options_.strict && options_.packed == Packed::On) {
    Error refused = why;
    refused.code = Code::NoBackend;
    refused.message = format("{} cannot be used: {}", f.what, why.message);
    refused.changes.push_back({"strict", "false", "reads the model's file instead"});
    return refused;
  }
  record_.emit_once(f);
  p.fallbacks.push_back(std::move(f));
  return Done{};
}

// Uses the first file that fits. Reports files that are not used; without any file it is an error if the
// user required one.
Status Loader::use_packed(PlannedModel& p) {
  const bool experts = std::any_of(p.plan.stages.begin(), p.plan.stages.end(),
                                   [](const Stage& s) { return s.reads_experts(); });
  if (options_.run.experts_from_disk && !experts)
    return Error{Code::Usage, "'experts_from_disk' has no effect: the model has no experts on the CPU",
                 "if it is a mixture of experts, set 'cpu_moe', too", "", "experts_from_disk"};
  if (options_.packed == Packed::Off && !experts) return Done{};
  if (options_.packed == Packed::Off)
    return Error{Code::Usage, "'experts_from_disk' reads packed weights, and 'packed' is off",
                 "leave 'packed' at auto", "", "experts_from_disk"};
  bool any = false;
  for (const std::string& path : packed_places(p.source)) {
    if (access(path.c_str(), F_OK) != 0) continue;
    any = true;
    const auto broken =
        std::find_if(damaged_.begin(), damaged_.end(), [&](const Error& e) { return e.value == path; });
    if (broken != damaged_.end()) {
      if (auto ok = refuse_packed(p, path, *broken); !ok) return ok;
      continue;
    }
    if (!p.source.file->tensors().adapters().empty())
      return refuse_packed(p, path, {Code::Unsupported, "packed weights cannot include adapters", ""});
    auto file = PackedFile::open(path, p.source.file->reader().identity());
    if (!file) {
      if (auto ok = refuse_packed(p, path, file.error()); !ok) return ok;
      continue;
    }
    bool used = false;
    for (size_t stage = 0; stage < p.plan.stages.size(); stage++) {
      auto fits = gimbal::use_packed(p.plan, stage, p.source.file->tensors(), *file);
      used |= bool(fits);
      if (fits) continue;
      if (auto ok = refuse_packed(p, path, fits.error()); !ok) return ok;
    }
    if (used) return Done{};
  }
  if (!experts && (any || options_.packed != Packed::On)) return Done{};
  return refuse_packed(
      p, "",
      {Code::NotFound, p.source.path.empty() ? "the model inside the program has none" : "there are none",
       "pack the model", reason::kPackedUnusable});
}

}  // namespace gimbal
