// Sizes as people type them.
#include "base/bytes.h"

#include <gtest/gtest.h>

namespace gimbal {
namespace {

TEST(ByteCount, TakesUnitsOfThousandsAndOf1024) {
  const std::pair<const char*, uint64_t> known[] = {{"1", 1},
                                                    {"512", 512},
                                                    {"2B", 2},
                                                    {"500M", 500000000},
                                                    {"2G", 2000000000},
                                                    {"6GB", 6000000000},
                                                    {"1.5GB", 1500000000},
                                                    {"6 GB", 6000000000},
                                                    {"3k", 3000},
                                                    {"1KiB", 1024},
                                                    {"6GiB", 6442450944},
                                                    {"1TB", 1000000000000}};
  for (const auto& [text, bytes] : known) EXPECT_EQ(bytes_named(text), bytes) << text;
}

TEST(ByteCount, RefusesAnythingElse) {
  for (const char* text : {"", "B", "G", "0", "-1G", "much", "6 GBs", "1e9", "6iB", "0x10", "nan", "inf",
                           "99999999P", " 1", "1  G"})
    EXPECT_EQ(bytes_named(text), std::nullopt) << text;
}

}  // namespace
}  // namespace gimbal
