#include "support/gguf_model.h"

#include <gtest/gtest.h>

#include "files/gguf.h"
#include "files/gguf_writer.h"
#include "support/golden.h"

namespace gimbal::test {

std::string story_with(const std::string& name, const MetadataValues& values) {
  const std::string path = temporary_path("story-" + name + ".gguf");
  auto story = open_gguf(golden_dir() + "/stories/stories260K-f32.gguf");
  EXPECT_TRUE(story) << (story ? "" : story.error().message);
  if (!story) return path;
  gimbal::GgufWriter writer;
  for (std::string_view key : story->metadata().keys())
    if (!values.contains(std::string(key))) writer.add(key, *story->metadata().find(key));
  for (const auto& [key, value] : values)
    if (const float* number = std::get_if<float>(&value)) writer.f32(key, *number);
    else writer.string(key, std::get<std::string>(value));
  std::vector<const StoredTensor*> tensors;
  for (const StoredTensor& t : story->tensors()) writer.tensor(t), tensors.push_back(&t);
  const auto done = writer.write_file(path, [&](size_t tensor, uint64_t offset, void* to, size_t bytes) {
    return story->read(*tensors[tensor], offset, to, bytes);
  });
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return path;
}

}  // namespace gimbal::test
