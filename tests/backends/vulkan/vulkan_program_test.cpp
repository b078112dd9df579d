// The programs on Vulkan devices, beside what vulkaninfo says of them.
#define TESTED_BACKEND "vulkan"
#include <regex>

#include "gpu/device_main.h"
#include "gpu/program_checks.h"
#include "support/cli.h"  // for ctest: it runs the program

namespace gimbal::test {
namespace {

// vulkaninfo warns when it finds no folder for sockets.
const Environment kDrivers{{"XDG_RUNTIME_DIR", "/tmp"}};

// The value of "key = value" of the device's section.
std::string value_of(const std::string& text, const std::string& key) {
  std::smatch found;
  return std::regex_search(text, found, std::regex("\\b" + key + "\\s*= (.*)")) ? found[1].str() : "";
}

std::vector<ListedDevice> listed() {
  RunSetup setup;
  setup.environment = kDrivers;
  const std::string text = run_program({"/usr/bin/env", "vulkaninfo"}, setup).out;
  std::vector<ListedDevice> all;
  for (size_t at = text.find("VkPhysicalDeviceProperties:"), next; at != text.npos; at = next) {
    next = text.find("VkPhysicalDeviceProperties:", at + 1);
    const std::string section = text.substr(at, next == text.npos ? next : next - at);
    ListedDevice d;
    d.name = value_of(section, "deviceName");
    int major = 0, minor = 0;
    EXPECT_EQ(std::sscanf(value_of(section, "apiVersion").c_str(), "%d.%d", &major, &minor), 2);
    d.version = format("Vulkan {}.{}", major, minor);
    const std::string type = value_of(section, "deviceType");
    d.software = contains(type, "TYPE_CPU"), d.unified = d.software || contains(type, "INTEGRATED");
    // Of the heaps that are local to the device, the sum.
    const size_t heaps = section.find("memoryHeaps: count"), types = section.find("memoryTypes: count");
    for (size_t heap = section.find("memoryHeaps[", heaps), end; heap < types; heap = end) {
      end = std::min(section.find("memoryHeaps[", heap + 1), types);
      const std::string one = section.substr(heap, end - heap);
      if (contains(one, "DEVICE_LOCAL")) d.memory += std::stoull(value_of(one, "size"));
    }
    all.push_back(d);
  }
  return all;
}

TEST(VulkanProgram, ListsWhatVulkaninfoLists) { check_listed("vulkan", listed(), kDrivers); }
TEST(VulkanProgram, UsesADeviceThatIsAskedFor) {
  const auto all = listed();
  ASSERT_FALSE(all.empty());
  check_asked_for("vulkan", all[0].software, kDrivers);
}
TEST(VulkanProgram, HasLayersByNumber) { check_layers_by_number("vulkan", kDrivers); }
TEST(VulkanProgram, KeepsExpertsOnTheCpu) { check_experts_on_the_cpu("vulkan", kDrivers); }
TEST(VulkanProgram, NeedsNothingOfThePath) { check_without_path("vulkan", kDrivers); }
TEST(VulkanProgram, FindsADriverThatArrives) {
  check_driver_arrives("vulkan", {{"VK_DRIVER_FILES", "/nonexistent.json"}}, kDrivers);
}
TEST(VulkanProgram, TheWorkerTakesADeviceByNumber) { check_worker("vulkan", int(listed().size()), kDrivers); }

Environment with_other_vendor() {
  Environment e = with_cache(kDrivers);
  e["VK_LAYER_PATH"] = VULKAN_LAYERS, e["VK_INSTANCE_LAYERS"] = "VK_LAYER_TEST_other_vendor";
  e["POCL_DEVICES"] = "";
  return e;
}

// A discrete GPU of another vendor, which is this machine's driver under a layer: taken by itself, with its
// own words.
TEST(VulkanProgram, TakesTheDiscreteGpuOfAnotherVendorByItself) {
  const auto real = listed();
  ASSERT_FALSE(real.empty());
  const Environment e = with_other_vendor();
  check_listed("vulkan", {{"Pretended Radeon", real[0].version, real[0].memory, false, false}}, e);
  const Ran r = gimbal_with(with(short_story(), {"--json"}), e);
  const Json j = json_of(r);
  EXPECT_EQ(j["device"], "vulkan:0") << r.err;
  EXPECT_SAYS(r.err, "Vulkan GPU detected, using Vulkan backend: vulkan:0, Pretended Radeon\n");
  expect_the_story(j);
}

// A device that opens and whose queue fails is refused before the choice, also where no upload needs the
// queue.
TEST(VulkanProgram, RefusesADeviceWhoseQueueFails) {
  for (bool integrated : {false, true}) {
    Environment e = with_other_vendor();
    if (integrated) e["PRETENDED_INTEGRATED"] = "1";
    EXPECT_EQ(backend_of(json_of(gimbal_with({"backends", "--json"}, e)), "vulkan")["available"], true);
    e["PRETENDED_LOSS"] = "1";
    const Json listed = backend_of(json_of(gimbal_with({"backends", "--json"}, e)), "vulkan");
    EXPECT_EQ(listed["available"], false);
    EXPECT_EQ(listed["code"], "device-lost");
    EXPECT_SAYS(listed["reason"].get<std::string>(), "the trial of its queue failed");
    const Ran soft = gimbal_with(with(short_story(), {"--backend", "vulkan", "--json"}), e);
    EXPECT_EQ(json_of(soft)["device"], "cpu:0");
    EXPECT_SAYS(soft.err, "the trial of its queue failed");
    EXPECT_EQ(gimbal_with(with(short_story(), {"--backend", "vulkan", "--strict"}), e).code, 4);
  }
}

// Other programs leave less memory than the model takes: as many layers as the driver's budget allows.
TEST(VulkanProgram, HasTheLayersThatTheBudgetOfItsDriverAllows) {
  const Json planned =
      json_of(gimbal_with({"plan", story_file("f32"), "--gpu-layers", "3", "--json"}, with_other_vendor()));
  uint64_t three = 0;  // bytes
  for (const Json& d : planned["devices"])
    if (d["device"] == "vulkan:0") three = d["total"];
  ASSERT_GT(three, 0u) << planned.dump(2);
  const std::pair<uint64_t, int> budgets[] = {{three, 3}, {three - 1, 2}, {three * 2, 5}};
  for (const auto& [budget, layers] : budgets) {
    Environment e = with_other_vendor();
    e["PRETENDED_BUDGET"] = std::to_string(budget);
    const Ran r = gimbal_with(with(short_story(), {"--json", "--gpu-layers", "-1"}), e);
    EXPECT_SAYS(r.err, format("offloaded {}/5 layers to vulkan:0\n", layers));
    expect_the_story(json_of(r));
  }
}

}  // namespace
}  // namespace gimbal::test
