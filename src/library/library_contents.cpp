#include "library/internal.h"

// The library's own names come first: library/internal.h.
#include <gimbal/library_contents.h>

namespace gimbal::v1 {
namespace {

constexpr size_t kMostNames = 100;

std::vector<std::string> first_names(const NameList& names) {
  std::vector<std::string> first;
  for (size_t i = 0; i < std::min(names.kept(), kMostNames); i++) first.emplace_back(names[i]);
  return first;
}

LibraryMachine machine_of(const BinaryImage& i) {
  LibraryMachine m{i.format,           i.machine,           i.build_id, i.needed,
                   i.exported.count(), i.undefined.count(), {},         {}};
  for (const EmbeddedGpuCode& g : i.gpu_code)
    m.gpu_targets.insert(m.gpu_targets.end(), g.targets.begin(), g.targets.end());
  for (const auto& f : i.cpu.families)
    if (!f.doubtful) m.instructions.push_back(f.name);
  return m;
}

}  // namespace

Result<LibraryContents> library_contents(const std::string& path) {
  const auto found = inspect_library(path);
  if (!found) return to_public(found.error());
  const LibraryVerdict verdict = judge(*found);
  LibraryContents out{path, summary(verdict), verdict.gpus, {}, {}, {}};
  for (const QuantizationKernel& k : verdict.kernels)
    out.kernels.push_back(format("{} ({})", k.name, k.device));
  for (size_t f = 0; f < kSymbolFamilies; f++)
    if (const FamilyFinding& one = verdict.families[f]; one.found())
      out.families.push_back(
          {info(SymbolFamily(f)).key, one.names.count(), first_names(one.names), one.libraries});
  for (const BinaryImage& i : found->images) out.machines.push_back(machine_of(i));
  return out;
}

}  // namespace gimbal::v1
