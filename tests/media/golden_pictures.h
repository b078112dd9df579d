// The golden pictures: decoded by Pillow 11.3, and the pieces that encoders got.
#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "support/golden.h"

namespace gimbal::test {

// Base64 of zlib data, unpacked to `bytes` bytes.
inline std::string unpacked(const std::string& text, size_t bytes) {
  const std::string packed = base64_decode(text);
  std::string out(bytes, '\0');
  uLongf n = out.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(out.data()), &n,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  EXPECT_EQ(n, bytes);
  return out;
}

inline std::string golden_picture(const std::string& name) { return golden_dir() + "/vision/images/" + name; }

}  // namespace gimbal::test
