#include "inspection/driver_names.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/vendor_libraries.h"

namespace gimbal {
namespace {

// A library's name without what its system adds; no stem: it has no such form.
struct NameForm {
  System system = System::Linux;
  std::string_view stem = {};
};

constexpr NameForm form_of(std::string_view file) {
  if (file.ends_with(".dll")) return {System::Windows, file.substr(0, file.size() - 4)};
  if (!file.starts_with("lib")) return {};
  if (file.ends_with(".dylib")) return {System::MacOs, file.substr(3, file.size() - 9)};
  const size_t at = file.find(".so");
  if (at == file.npos || file.find_first_not_of(".0123456789", at + 3) != file.npos) return {};
  return {System::Linux, file.substr(3, at - 3)};
}

struct DriverName {
  System system = System::Linux;
  std::array<char, 16> stem = {};
};

// The drivers of vendor_libraries.def. Stems alone, so that a program without a backend has no name of its
// libraries.
constexpr auto kDriverNames = [] {
  std::array<DriverName, std::size(kVendorLibraries)> all{};
  for (size_t i = 0; i < all.size(); i++) {
    if (kVendorLibraries[i].compiles) continue;
    const NameForm form = form_of(kVendorLibraries[i].file);
    all[i].system = form.system;
    std::copy(form.stem.begin(), form.stem.end(), all[i].stem.begin());
  }
  return all;
}();

}  // namespace

bool is_driver_name(std::string_view file) {
  const NameForm form = form_of(file);
  return !form.stem.empty() &&
         std::any_of(kDriverNames.begin(), kDriverNames.end(), [&](const DriverName& d) {
           return d.system == form.system && form.stem == d.stem.data();
         });
}

}  // namespace gimbal
