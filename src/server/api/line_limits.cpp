#include "server/api/answer.h"

namespace gimbal::api {

bool LineLimits::ends(std::string& text, double seconds_so_far) {
  if (nothing) return text.clear(), true;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t';
    if (begins_line_ && blank) found_++;
    if (begins_line_ && !blank) {
      if (found_ < indent) return text.resize(i), true;
      begins_line_ = false;
    }
    if (c != '\n') continue;
    begins_line_ = true, found_ = 0;
    if (seconds > 0 && seconds_so_far > seconds) return text.resize(i + 1), true;
  }
  return false;
}

}  // namespace gimbal::api
