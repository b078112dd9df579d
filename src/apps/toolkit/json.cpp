#include "apps/toolkit/json.h"

#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// Characters that a terminal would act on as \uNNNN, which means the same. Outside of strings JSON has none
// of them but newlines; inside, control characters below 0x20 are escaped already.
std::string harmless(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    const size_t bytes = utf8_step(json, at).bytes;
    const std::string_view c = std::string_view(json).substr(at, bytes);
    at += bytes;
    if (c == "\n" || !acts_on_terminals(c)) {
      out += c;
      continue;
    }
    uint32_t code = uint8_t(c[0]);
    if (bytes == 2) code = (code & 0x1f) << 6 | (uint8_t(c[1]) & 0x3f);
    if (bytes == 3) code = (code & 0xf) << 12 | (uint8_t(c[1]) & 0x3fu) << 6 | (uint8_t(c[2]) & 0x3fu);
    out += format("\\u{:04x}", code);
  }
  return out;
}

}  // namespace

void print_json(const Json& j, bool one_line) {
  print(harmless(j.dump(one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace)));
  print("\n");
}

}  // namespace gimbal
