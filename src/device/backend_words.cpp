#include "device/backend_words.h"

#include <algorithm>

#include "device/reason.h"

namespace gimbal {

const char* known_reason(std::string_view text) {
#define GIMBAL_REASON(constant, word) \
  if (text == reason::constant) return reason::constant;
  GIMBAL_REASONS(GIMBAL_REASON)
#undef GIMBAL_REASON
  return nullptr;
}

Error backend_error(const char* said, const char* otherwise) {
  Error e{Code::NoBackend, "no reason given", "", otherwise};
  std::string_view text = said ? said : "";
  if (const size_t last = text.rfind('\n'); last != text.npos)
    if (const char* code = known_reason(text.substr(last + 1))) e.reason = code, text = text.substr(0, last);
  if (text.empty()) return e;
  const size_t end = std::min(text.find('\n'), text.size());
  e.message = text.substr(0, end);
  if (end < text.size()) e.remedy = text.substr(end + 1);
  return e;
}

}  // namespace gimbal
