// The projector file that belongs to a model, by its place and its rows.
#include <filesystem>

#include "engine/picture_input.h"
#include "support/golden.h"

#include <gtest/gtest.h>

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

TEST(ProjectorBeside, IsTheOnlyOneThatFits) {
  const fs::path from = golden_dir() + "/vision", folder = temporary_path("pair");
  fs::create_directories(folder);
  const auto add = [&](const char* file, const char* as) { fs::copy_file(from / file, folder / as); };
  add("text-shapes.gguf", "shapes-F32.gguf");
  const auto model = open_model_file((folder / "shapes-F32.gguf").string());
  ASSERT_TRUE(model);
  EXPECT_EQ(projector_beside(*model), "");
  add("mmproj-shapes.gguf", "shapes-mmproj-F32.gguf");
  EXPECT_EQ(projector_beside(*model), (folder / "shapes-mmproj-F32.gguf").string());
  add("mmproj-gemma3.gguf", "mmproj-gemma3.gguf");  // of other rows
  add("text-gemma3.gguf", "mmproj-text.gguf");      // no projector
  EXPECT_EQ(projector_beside(*model), (folder / "shapes-mmproj-F32.gguf").string());
  add("mmproj-shapes.gguf", "mmproj-shapes-again.gguf");
  EXPECT_EQ(projector_beside(*model), "") << "two fit";
  EXPECT_EQ(projector_beside({"inside", "", model->file}), "");
}

// A step holds the largest picture whose rows see each other, and a row of each running text.
TEST(ProjectorBeside, ABatchHoldsAPictureAndARowOfEachText) {
  const auto projector = open_projector(golden_dir() + "/vision/mmproj-gemma3.gguf");
  ASSERT_TRUE(projector) << projector.error().message;
  const VisionFile& vision = (*projector)->vision;
  ASSERT_TRUE(vision.arch->together);
  RunOptions run;
  run.batch = 1, run.sequences = 8;
  take_pictures(run, **projector, {});
  EXPECT_TRUE(run.embeddings);
  EXPECT_EQ(run.batch, vision.most_patches / vision.patches_per_row() + 8);
  run.batch = 10'000;
  take_pictures(run, **projector, {});
  EXPECT_EQ(run.batch, 10'000);
}

}  // namespace
}  // namespace gimbal::test
