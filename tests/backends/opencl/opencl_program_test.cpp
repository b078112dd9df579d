// The programs on OpenCL devices, beside what clinfo says of them.
#define TESTED_BACKEND "opencl"
#include <regex>
#include <sstream>

#include "gpu/device_main.h"
#include "gpu/program_checks.h"
#include "support/cli.h"  // for ctest: it runs the program

namespace gimbal::test {
namespace {

// PoCL reads the number of devices from this; other drivers ignore it.
const Environment kDrivers{{"POCL_DEVICES", "basic pthread"}};

// By clinfo's lines "[PLATFORM/DEVICE]  KEY  VALUE".
std::vector<ListedDevice> listed() {
  RunSetup setup;
  setup.environment = kDrivers;
  std::istringstream lines(run_program({"/usr/bin/env", "clinfo", "--raw"}, setup).out);
  std::vector<std::string> order;
  std::map<std::string, std::map<std::string, std::string>> values;
  std::smatch found;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, found, std::regex(R"(\[(\w+/\d+)\]\s+(\w+)\s+(.*))"))) {
      if (!values.count(found[1])) order.push_back(found[1]);
      values[found[1]][found[2]] = found[3];
    }
  std::vector<ListedDevice> all;
  for (const std::string& device : order) {
    auto& v = values[device];
    ListedDevice d;
    d.name = v["CL_DEVICE_NAME"];
    if (std::regex_search(v["CL_DEVICE_VERSION"], found, std::regex(R"(^OpenCL \d+\.\d+)")))
      d.version = found[0];
    d.memory = std::stoull(v["CL_DEVICE_GLOBAL_MEM_SIZE"]);
    d.software = contains(v["CL_DEVICE_TYPE"], "CL_DEVICE_TYPE_CPU");
    d.unified = v["CL_DEVICE_HOST_UNIFIED_MEMORY"] == "CL_TRUE";
    all.push_back(d);
  }
  return all;
}

TEST(OpenclProgram, ListsWhatClinfoLists) { check_listed("opencl", listed(), kDrivers); }
TEST(OpenclProgram, UsesADeviceThatIsAskedFor) {
  const auto all = listed();
  ASSERT_FALSE(all.empty());
  check_asked_for("opencl", all[0].software, kDrivers);
}
TEST(OpenclProgram, HasLayersByNumber) { check_layers_by_number("opencl", kDrivers); }
TEST(OpenclProgram, KeepsExpertsOnTheCpu) { check_experts_on_the_cpu("opencl", kDrivers); }
TEST(OpenclProgram, NeedsNothingOfThePath) { check_without_path("opencl", kDrivers); }
TEST(OpenclProgram, FindsADriverThatArrives) {
  check_driver_arrives("opencl", {{"OCL_ICD_VENDORS", "/nonexistent"}}, kDrivers);
}
TEST(OpenclProgram, TheWorkerTakesADeviceByNumber) { check_worker("opencl", int(listed().size()), kDrivers); }

}  // namespace
}  // namespace gimbal::test
