// SHA-256 (FIPS 180-4): digests of files, texts and stored pages. Uses the processor's SHA instructions
// (x86), which are about five times as fast.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gimbal {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  // `hardware` false: the portable code, for tests. The digests are the same.
  explicit Sha256(bool hardware = true);
  void add(std::string_view bytes);
  // The digest of all added bytes, and its lower-case hexadecimal digits. Call one of them, once, at the end.
  Digest digest();
  std::string hex();
  // The digests of four texts. With SHA instructions, which wait for each other's results, this takes about
  // half as long as one text after the other; it is fastest for texts of one length.
  static std::array<Digest, 4> four(const std::array<std::string_view, 4>& texts, bool hardware = true);

 private:
  void blocks(const char* bytes, size_t count);

  bool hardware_ = false;
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string rest_;  // incomplete block
  uint64_t bytes_ = 0;
};

}  // namespace gimbal
