// Two models on two devices in one server: one on a GPU, one on the CPU, each by its section of --config.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "support/cli.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// One file under two names: both devices must write the same text with the same probabilities.
TEST(VulkanServe, TwoModelsOnTwoDevices) {
  const std::string folder = temporary_path("two-devices");
  fs::create_directories(folder);
  for (const char* name : {"/on_gpu.gguf", "/on_cpu.gguf"})
    fs::copy_file(story_file("f16"), folder + name, fs::copy_options::overwrite_existing);
  ASSERT_TRUE(write_file(folder + "/serve.toml", R"(strict = true  # no other device in place of the section's
[model.on_gpu]
backend = vulkan
allow-software-devices = true
verify = never  # vulkan_kernels_test checks its kernels
[model.on_cpu]
backend = cpu
)"));
  const Serving s({"--config", folder + "/serve.toml", folder + "/on_gpu.gguf", folder + "/on_cpu.gguf"});
  const auto complete = [&](const std::string& model) {
    const HttpAnswer a = s.ask(post("/v1/completions", Json{{"model", model},
                                                            {"prompt", "Once upon a time"},
                                                            {"max_tokens", 24},
                                                            {"temperature", 0},
                                                            {"logprobs", 2}}
                                                           .dump()));
    EXPECT_EQ(a.status, 200) << a.body;
    return Json::parse(a.body, nullptr, false)["choices"];
  };
  Json on_gpu, on_cpu;
  std::thread other([&] { on_gpu = complete("on_gpu"); });
  on_cpu = complete("on_cpu");
  other.join();
  EXPECT_EQ(on_gpu, on_cpu);
  EXPECT_SAYS(on_cpu.dump(), "little girl named Lily");

  std::map<std::string, Json> models;
  const Json running = Json::parse(s.ask(get("/api/ps")).body);
  for (const Json& m : running["models"]) models[m["name"]] = m;
  ASSERT_EQ(models.size(), 2u) << running;
  EXPECT_GT(models["on_gpu"]["size_vram"], 0);
  EXPECT_EQ(models["on_gpu"]["size_vram"], models["on_gpu"]["size"]);
  EXPECT_EQ(models["on_cpu"]["size_vram"], 0);
}

}  // namespace
}  // namespace gimbal::test
