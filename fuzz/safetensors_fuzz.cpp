// libFuzzer over safetensors files: whatever the bytes are, parse_safetensors() answers with an error that
// says something, or with tensors that cover the file's data without a gap or an overlap.

#include "base/text.h"
#include "files/safetensors.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  const Bytes whole(reinterpret_cast<const std::byte*>(data), size);
  const auto parsed = parse_safetensors(whole, "fuzzed.safetensors");
  if (!parsed) {
    require(parsed.error().message.starts_with("'fuzzed.safetensors'"));
    return 0;
  }
  uint64_t end = 0;
  for (const StoredTensor& t : parsed->tensors()) {
    require(t.offset <= size && t.bytes <= size - t.offset && t.rank <= kMaxStoredRank);
    require(!end || t.offset == end);
    end = t.offset + t.bytes;
    require(t.bytes == uint64_t(t.values()) * info(t.type).bytes);
    require(parsed->tensors().find(t.name) == &t && is_utf8(t.name));
    require(bool(parsed->read(t)));
  }
  require(!end || end == size);
  for (const auto& [key, entry] : parsed->metadata()) require(parsed->metadata().string(key).has_value());
  return 0;
}
