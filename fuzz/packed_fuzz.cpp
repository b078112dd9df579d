// libFuzzer over the header of packed weights: whatever the bytes are, parse() answers with an error that
// says something or with weights that lie inside the file. Each input is tried as it is, and with hashes that
// fit, for otherwise none would get past them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "files/packed_file.h"
#include "require.h"

namespace {

using namespace gimbal;

void parse(Bytes head, uint64_t file_bytes) {
  const auto parsed = PackedFile::parse(head, file_bytes);
  if (!parsed) return require(!parsed.error().message.empty());
  for (const PackedWeight& w : *parsed) {
    require(w.offset <= file_bytes && w.bytes <= file_bytes - w.offset && w.offset % 64 == 0);
    require(w.offset >= sizeof(PackedHead) + parsed->size() * sizeof(PackedWeight));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> head(bytes, bytes + size);
  parse(head, size);
  if (size < sizeof(PackedHead)) return 0;
  PackedHead h;
  std::memcpy(&h, data, sizeof h);
  const size_t table = std::min<size_t>(size_t(h.weights) * sizeof(PackedWeight), size - sizeof h);
  h.table = hash_of(Bytes(head).subspan(sizeof h, table));
  std::memcpy(head.data(), &h, sizeof h);
  h.before = hash_of(Bytes(head).first(offsetof(PackedHead, before)));
  std::memcpy(head.data(), &h, sizeof h);
  parse(head, h.bytes);
  return 0;
}
