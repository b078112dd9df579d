// Prints a hash of the packed tiles of each weight format, of blocks of random bytes:
// scripts/check/packing.sh compares two compilers by it.
#include <cstdio>
#include <vector>

#include "packing/pack.h"
#include "tensor/dtype.h"

int main() {
  using namespace gimbal;
  constexpr int64_t kColumns = 768, kRows = 21;  // neither a whole number of tiles nor one chunk
  for (const DType type : kAllDTypes) {
    const int64_t row = row_bytes(type, kColumns), bytes = packing::packed_bytes(type, kColumns, kRows);
    if (!bytes) continue;
    uint64_t state = 1;
    std::vector<uint8_t> source(size_t(row * kRows + 32)), tiles(size_t(bytes), 0);
    for (uint8_t& byte : source) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = uint8_t(state >> 56);
    }
    packing::pack(type, kColumns, kRows, source.data(), tiles.data(), 0, kRows);
    uint64_t hash = 14695981039346656037u;
    for (const uint8_t byte : tiles) hash = (hash ^ byte) * 1099511628211u;
    std::printf("%s %016llx\n", info(type).name, static_cast<unsigned long long>(hash));
  }
}
