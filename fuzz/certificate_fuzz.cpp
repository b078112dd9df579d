// libFuzzer over certificates: a text is refused with an error that says something, or it is read; then its
// own text is read as the same certificate, and its parts fit together.
#include <string_view>

#include "audit/certificate.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  const auto read = read_certificate({reinterpret_cast<const char*>(data), size});
  if (!read) {
    require(!read.error().message.empty());
    return 0;
  }
  require(read->logits.rows.size() == 8 * read->rows());
  const std::string text = to_text(*read);
  const auto again = read_certificate(text);
  require(bool(again) && to_text(*again) == text);
  return 0;
}
