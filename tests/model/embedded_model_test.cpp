// The model in the program must be the file in assets/, byte for byte, and that file the golden one.
#include "model/embedded_model.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/file.h"
#include "support/golden.h"

namespace gimbal {
namespace {

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST(EmbeddedModel, IsTheFileInAssets) {
  auto asset = read_file(GIMBAL_SOURCE_DIR "/assets/stories260K.gguf");
  ASSERT_TRUE(asset) << asset.error().message;
  ASSERT_EQ(embedded_model().size(), asset->size());
  EXPECT_TRUE(text_of(embedded_model()) == *asset);
}

TEST(EmbeddedModel, IsTheGoldenModel) {
  auto golden = read_file(test::golden_dir() + "/stories/stories260K-f32.gguf");
  ASSERT_TRUE(golden) << golden.error().message;
  EXPECT_TRUE(text_of(embedded_model()) == *golden);
}

TEST(EmbeddedModel, StartsAsAGgufFileOnABoundaryOf64Bytes) {
  EXPECT_EQ(text_of(embedded_model()).substr(0, 4), "GGUF");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(embedded_model().data()) % 64, 0u);
}

}  // namespace
}  // namespace gimbal
