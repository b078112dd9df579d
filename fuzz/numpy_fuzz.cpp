// libFuzzer over npy and npz files: whatever the bytes are, the readers answer with an error that says
// something, or with arrays that can be read or refused. Nothing is unpacked that was not asked for.

#include "files/npy.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  const Bytes whole(reinterpret_cast<const std::byte*>(data), size);
  for (const auto& parsed : {parse_npy(whole, "fuzzed"), parse_npz(whole, "fuzzed")}) {
    if (!parsed) {
      require(parsed.error().message.size() > 10);
      continue;
    }
    for (const StoredTensor& t : parsed->tensors()) {
      require(t.rank <= kMaxStoredRank && t.bytes == uint64_t(t.values()) * info(t.type).bytes);
      // Deflate makes at most a thousandfold of the file.
      require(t.bytes <= size * 1100);
      if (t.bytes < 1 << 20) static_cast<void>(parsed->read(t));
      std::byte last{};
      if (t.bytes) static_cast<void>(parsed->read(t, t.bytes - 1, &last, 1));
    }
  }
  return 0;
}
