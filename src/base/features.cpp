#include "base/features.h"

#include "base/format.h"

namespace gimbal {

Error absent_feature_error(std::string_view subject, std::string_view feature) {
  return {Code::Unsupported,
          format("{} needs the feature {}, which this build of gimbal lacks", subject, feature),
          format("build gimbal with -DGIMBAL_FEATURES=all, or with {} in its list", feature)};
}

}  // namespace gimbal
