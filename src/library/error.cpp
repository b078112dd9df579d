// Converts the library's errors to public ones: apart from the other conversions, so that a program that
// only fetches models links no device code.
#include "library/internal.h"

namespace gimbal::v1 {

Error to_public(const own::Error& e) {
  static_assert(int(gimbal::Code::DeviceLost) == int(Code::DeviceLost));
  Error out{Code(int(e.code)), e.message, e.remedy, e.reason, e.field, e.value, e.limit, {}};
  std::string changes;
  for (const gimbal::Change& c : e.changes) {
    out.changes.push_back({c.field, c.value, c.effect});
    changes += format("{}{}{}{}{}{}", changes.empty() ? "" : "; ", c.field, c.value.empty() ? "" : " = ",
                      c.value, c.effect.empty() ? "" : " ", c.effect);
  }
  if (!changes.empty()) out.remedy = changes + (out.remedy.empty() ? "" : "; ") + out.remedy;
  return out;
}

}  // namespace gimbal::v1
