// libFuzzer over the messages of the process that runs a libllama, foreign code: whatever bytes come, they
// are cut into the same frames in one piece and byte by byte, and rows and tensors have exactly their
// announced size.
#include <algorithm>

#include "base/json.h"
#include "llama/protocol.h"
#include "require.h"

namespace {

using namespace gimbal;
using namespace gimbal::llama;

// The frames, one after the other, and whether a fault ended them.
std::string read(std::string_view bytes, size_t at_once) {
  FrameReader reader;
  std::string all;
  for (size_t at = 0; at < bytes.size(); at += at_once) {
    reader.feed(bytes.substr(at, at_once));
    for (;;) {
      auto frame = reader.next();
      if (!frame) return all + "fault";
      if (!*frame) break;
      const std::string& payload = (*frame)->bytes;
      require(payload.size() <= bytes.size());
      all += encoded((*frame)->kind, payload);
      if (const auto row = read_row(payload))
        require(encoded_row(row->position, row->values).size() == 8 + payload.size());
      if (const auto tensor = read_tensor(payload)) {
        require(tensor->values.size() == size_t(tensor->rows) * size_t(tensor->columns));
        require(12 + tensor->name.size() + 4 * tensor->values.size() == payload.size());
      }
      if ((*frame)->kind == FrameKind::Json) (void)parse_json(payload);
    }
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min<size_t>(size, 8192));
  const std::string whole = read(bytes, bytes.size() + 1);
  require(whole == read(bytes, 1));
  require(whole == read(bytes, 7));
  return 0;
}
