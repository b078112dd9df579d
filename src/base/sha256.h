// SHA-256 (FIPS 180-4), for content-addressed file names.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gimbal {

class Sha256 {
 public:
  void add(std::string_view bytes);
  std::string hex();  // digest of all added bytes, in lower case; call once, at the end

 private:
  void block(const char* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string rest_;  // incomplete block
  uint64_t bytes_ = 0;
};

}  // namespace gimbal
