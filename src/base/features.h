// Parts that a build of gimbal can leave out: the option GIMBAL_FEATURES (cmake/features.cmake).
#pragma once
#include <string_view>

#include "base/result.h"

namespace gimbal {

// The error of a build without `feature`. `subject` begins the sentence, such as "pictures".
Error absent_feature_error(std::string_view subject, std::string_view feature);

}  // namespace gimbal
