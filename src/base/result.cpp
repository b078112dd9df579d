#include "base/result.h"

#include "base/format.h"

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

Error absent_feature_error(std::string_view subject, std::string_view feature) {
  return {Code::Unsupported,
          format("{} needs the feature {}, which this build of gimbal lacks", subject, feature),
          format("build gimbal with -DGIMBAL_FEATURES=all, or with {} in its list", feature)};
}

}  // namespace gimbal
