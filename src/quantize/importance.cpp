#include "quantize/importance.h"

#include "quantize/importance_sums.h"

namespace gimbal {
namespace {

Result<Importance> means_of(const Result<ImportanceSums>& sums) {
  if (!sums) return sums.error();
  Importance all;
  for (const auto& [name, of] : sums->tensors()) all.add(name, of.means());
  return all;
}

}  // namespace

const std::vector<float>* Importance::find(std::string_view tensor) const {
  const auto found = of_.find(tensor);
  return found == of_.end() ? nullptr : &found->second;
}

Result<Importance> Importance::parsed(Bytes bytes, const std::string& name) {
  return means_of(ImportanceSums::parsed(bytes, name));
}

Result<Importance> Importance::open(const std::string& path) { return means_of(ImportanceSums::open(path)); }

}  // namespace gimbal
