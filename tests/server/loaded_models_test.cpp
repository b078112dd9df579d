// Which model a server unloads when the memory is short.
#include "server/loaded_models.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "server/api_server.h"

namespace gimbal::test {
namespace {

// Devices with memory for two models.
class ShortMemory : public testing::Test {
 protected:
  static constexpr int kPlaces = 2;
  ShortMemory() {
    std::vector<ModelFile> files;
    for (const char* name : {"a", "b", "c"}) files.push_back({name, format("/models/{}.gguf", name), file_});
    auto made = LoadedModels::create(
        std::move(files),
        {.load = [this](const std::string& id, const ModelFile&, int) { return load(id); }});
    EXPECT_TRUE(made);
    models_ = std::move(*made);
  }

  Result<ServedModelPtr> load(const std::string& id) {
    if (there_ == kPlaces) return Error{Code::OutOfMemory, "there is no memory for " + id, ""};
    there_++;
    auto* model = new ScriptedModel;
    model->is_named(id);
    return ServedModelPtr(model, [this](ScriptedModel* m) { delete m, there_--; });
  }
  // The pause gives each request a time of its own.
  void use(const std::string& id) {
    EXPECT_TRUE(models_->get(id)) << id;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::string loaded() const {
    std::string names;
    for (const ServedModelPtr& m : models_->loaded()) names += m->id();
    return names;
  }

  std::atomic<int> there_ = 0;
  std::shared_ptr<const ModelSource> file_ =
      std::make_shared<ModelSource>(*parse_gguf(embedded_model(), "the built-in model"));
  std::unique_ptr<LoadedModels> models_;
};

TEST_F(ShortMemory, TheModelUnusedForTheLongestTimeGoes) {
  use("a"), use("b"), use("c");
  EXPECT_EQ(loaded(), "bc");
  use("b"), use("a");
  EXPECT_EQ(loaded(), "ab") << "c was used before b";
}

TEST_F(ShortMemory, AModelInUseStays) {
  const ServedModelPtr held = *models_->get("a");
  use("b"), use("c");
  EXPECT_EQ(loaded(), "ac") << "a is in use";
  const ServedModelPtr other = *models_->get("c");
  const auto none = models_->get("b");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::OutOfMemory);
  EXPECT_EQ(loaded(), "ac");
}

}  // namespace
}  // namespace gimbal::test
