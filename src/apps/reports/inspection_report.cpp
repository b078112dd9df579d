#include "apps/reports/verdict_reports.h"

#include <algorithm>

#include "apps/toolkit/terminal.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/json.h"

namespace gimbal {
namespace {

constexpr size_t kListedWhole = 5, kListedFirst = 2;  // names of a family, as in the roadmap
constexpr size_t kNamesInJson = 100;                  // of a family, without --symbols

std::string label(const std::string& title) { return format("{:<18}", title + ":"); }

std::string listed(const std::vector<std::string>& all) {
  return all.empty() ? std::string("none") : printable(fmt::to_string(fmt::join(all, ", ")));
}

// The first names, those of C before those of C++.
std::vector<std::string_view> plain_first(const FamilyFinding& f, size_t limit) {
  std::vector<std::string_view> first;
  for (size_t i = 0; i < f.plain.kept() && first.size() < limit; i++) first.push_back(f.plain[i]);
  for (size_t i = 0; i < f.names.kept() && first.size() < limit; i++)
    if (is_mangled(f.names[i])) first.push_back(f.names[i]);
  return first;
}

std::string family_text(SymbolFamily family, const FamilyFinding& f, const LibraryVerdict& v, bool all) {
  std::string out = format("{}{} found\n", label(info(family).title), f.names.count());
  if (family == SymbolFamily::Quantization) {
    for (const QuantizationKernel& k : v.kernels) out += format("  - Detected: {} ({})\n", k.name, k.device);
    return out;
  }
  const size_t shown = all || f.names.kept() <= kListedWhole ? f.names.kept() : kListedFirst;
  for (const std::string_view name : plain_first(f, shown)) out += format("  - {}\n", printable(name));
  if (shown < f.names.count()) out += "  ...\n";
  if (!f.libraries.empty()) out += format("  Needs: {}\n", listed(f.libraries));
  if (!f.code.empty()) out += format("  Contains: {}\n", listed(f.code));
  if (family == SymbolFamily::Cuda)
    out += v.gpus.empty() ? "  Inference: CPU-only backend\n"
                          : format("  Inference: GPU backend ({})\n", fmt::join(v.gpus, ", "));
  return out;
}

bool always_shown(SymbolFamily f) {
  return f == SymbolFamily::Bitnet || f == SymbolFamily::Llama || f == SymbolFamily::Cuda ||
         f == SymbolFamily::Quantization;
}

std::string cpu_text(const CpuInstructions& cpu) {
  if (!cpu.not_scanned.empty()) return format("not scanned: {}", cpu.not_scanned);
  std::vector<std::string> found, doubtful;
  for (const auto& f : cpu.families)
    (f.doubtful ? doubtful : found).push_back(format("{} ({})", f.name, f.count));
  std::string out =
      found.empty() ? "the machine's basic instructions alone" : fmt::to_string(fmt::join(found, ", "));
  if (!doubtful.empty()) out += format("; doubtful, perhaps data: {}", fmt::join(doubtful, ", "));
  return out;
}

std::string image_text(const BinaryImage& i) {
  Table t("ll");
  t.row({"type", format("{} {}, {}{}{}", i.format, i.type, i.machine, i.big_endian ? ", big-endian" : "",
                        i.members ? format(", {} members", i.members) : "")});
  if (!i.name.empty()) t.row({"name", printable(i.name)});
  if (!i.system.empty()) t.row({"system", i.system});
  if (!i.build_id.empty()) t.row({"build id", i.build_id});
  t.row({"needs", listed(i.needed)});
  if (!i.opens.empty()) t.row({"may open", listed(i.opens)});
  if (!i.rpath.empty()) t.row({"rpath", listed(i.rpath)});
  if (!i.runpath.empty()) t.row({"runpath", listed(i.runpath)});
  t.row({"symbols", format("{} exported, {} undefined{}", i.exported.count(), i.undefined.count(),
                           i.stripped ? "; stripped of local ones" : "")});
  if (i.gpu_code.empty()) t.row({"GPU code", "none found"});
  for (const EmbeddedGpuCode& g : i.gpu_code)
    t.row({"GPU code", format("{}: {} {}{}{}", g.kind, g.pieces, g.pieces == 1 ? "piece" : "pieces",
                              g.bytes ? ", " + human_bytes(g.bytes) : "",
                              g.targets.empty() ? "" : ": " + listed(g.targets))});
  t.row({"CPU code", cpu_text(i.cpu)});
  if (i.cpu.not_scanned.empty())
    t.row({"", i.cpu.scanned == i.cpu.bytes ? format("all {} of code were scanned", human_bytes(i.cpu.bytes))
                                            : format("{} of {} were scanned: more may exist",
                                                     human_bytes(i.cpu.scanned), human_bytes(i.cpu.bytes))});
  for (const std::string& n : i.notes) t.row({"note", printable(n)});
  return t.text("  ");
}

Json names_json(const NameList& names, size_t limit) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(limit, names.kept()); i++) list.push_back(std::string(names[i]));
  return list;
}

Json cpu_json(const CpuInstructions& cpu) {
  Json families = Json::array();
  for (const auto& f : cpu.families)
    families.push_back({{"name", f.name}, {"count", f.count}, {"doubtful", f.doubtful}});
  return {{"not_scanned", cpu.not_scanned.empty() ? Json() : Json(cpu.not_scanned)},
          {"bytes", cpu.bytes},
          {"scanned_bytes", cpu.scanned},
          {"undecoded_bytes", cpu.undecoded},
          {"families", families}};
}

Json image_json(const BinaryImage& i, InspectionView view) {
  Json gpu = Json::array();
  for (const EmbeddedGpuCode& g : i.gpu_code)
    gpu.push_back({{"kind", g.kind}, {"targets", g.targets}, {"pieces", g.pieces}, {"bytes", g.bytes}});
  Json j{{"format", i.format},
         {"type", i.type},
         {"machine", i.machine},
         {"bits", i.bits},
         {"big_endian", i.big_endian},
         {"name", i.name},
         {"system", i.system},
         {"build_id", i.build_id},
         {"needed", i.needed},
         {"opens", i.opens},
         {"rpath", i.rpath},
         {"runpath", i.runpath},
         {"stripped", i.stripped},
         {"members", i.members},
         {"exported", i.exported.count()},
         {"undefined", i.undefined.count()},
         {"gpu_code", gpu},
         {"cpu_code", cpu_json(i.cpu)},
         {"notes", i.notes}};
  if (view.all_symbols) {
    j["exported_symbols"] = names_json(i.exported, SIZE_MAX);
    j["undefined_symbols"] = names_json(i.undefined, SIZE_MAX);
  }
  return j;
}

}  // namespace

std::string inspection_text(const Inspection& i, const LibraryVerdict& v, InspectionView view) {
  std::string out = format("Library: {}\n", printable(i.path.substr(i.path.rfind('/') + 1)));
  for (size_t n = 0; n < kSymbolFamilies; n++) {
    const auto family = SymbolFamily(n);
    if (!always_shown(family) && !v.of(family).found()) continue;
    out += (n ? "\n" : "") + family_text(family, v.of(family), v, view.all_symbols);
  }
  out += format("\nFile:             {}, {}{}\n", printable(i.path), human_bytes(i.bytes),
                i.container.empty() ? "" : ", " + i.container);
  for (const BinaryImage& image : i.images) {
    if (&image != &i.images.front()) out += "\n";
    out += image_text(image);
  }
  if (v.loads_backends)
    out += "  note      it loads further backends when it runs: the libraries beside it decide about GPUs\n";
  out += format("\nVerdict:          {}\n", summary(v));
  if (view.all_symbols)
    for (const BinaryImage& image : i.images)
      for (auto [title, names] : {std::pair("Exported", &image.exported), {"Undefined", &image.undefined}}) {
        out += format("\n{} symbols ({}):\n", title, image.machine);
        for (size_t n = 0; n < names->kept(); n++) out += format("  {}\n", printable((*names)[n]));
      }
  return out;
}

Json inspection_json(const Inspection& i, const LibraryVerdict& v, InspectionView view) {
  Json families = Json::object(), kernels = Json::array(), images = Json::array();
  for (size_t n = 0; n < kSymbolFamilies; n++) {
    const FamilyFinding& f = v.families[n];
    families[info(SymbolFamily(n)).key] = {
        {"count", f.names.count()},
        {"exported", f.exported.count()},
        {"names", names_json(f.names, view.all_symbols ? SIZE_MAX : kNamesInJson)},
        {"needed", f.libraries},
        {"gpu_code", f.code}};
  }
  for (const QuantizationKernel& k : v.kernels) kernels.push_back({{"name", k.name}, {"device", k.device}});
  for (const BinaryImage& image : i.images) images.push_back(image_json(image, view));
  return {{"path", i.path},
          {"bytes", i.bytes},
          {"container", i.container},
          {"verdict",
           {{"summary", summary(v)},
            {"gpus", v.gpus},
            {"cpu_only", v.gpus.empty()},
            {"loads_backends", v.loads_backends}}},
          {"symbols", families},
          {"quantization_kernels", kernels},
          {"images", images}};
}

std::string libraries_text(const std::vector<std::string>& paths) {
  Table t("lll");
  for (const std::string& path : paths) {
    const auto found = inspect_library(path);
    if (!found) {
      t.row({printable(path), "cannot be read", printable(found.error().message)});
      continue;
    }
    std::vector<std::string> cpu;
    for (const auto& f : found->images.front().cpu.families)
      if (!f.doubtful) cpu.push_back(f.name);
    t.row({printable(path), summary(judge(*found)), fmt::to_string(fmt::join(cpu, ", "))});
  }
  return t.text("  ");
}

Json libraries_json(const std::vector<std::string>& paths) {
  Json all = Json::array();
  for (const std::string& path : paths) {
    const auto found = inspect_library(path);
    all.push_back(found ? inspection_json(*found, judge(*found), {})
                        : Json{{"path", path}, {"error", found.error().message}});
  }
  return all;
}

}  // namespace gimbal
