#include "base/result.h"

namespace gimbal {

Error::Error() = default;
Error::Error(Code c, std::string what, std::string_view help, const char* why, const char* setting,
             std::string_view has, std::string_view must, std::vector<Change> better)
    : code(c),
      message(std::move(what)),
      remedy(help),
      reason(why),
      field(setting),
      value(has),
      limit(must),
      changes(std::move(better)) {}
Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

}  // namespace gimbal
