// The programs on the devices of one backend, as a user meets them: listed as the vendor's own tool lists
// them, used when asked for, refused by --strict, found without a path and when a driver arrives. Each check
// is a function of the backend's name. The devices may be software devices; `drivers` is what they need in
// the environment.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/cli.h"

namespace gimbal::test {

using Environment = std::map<std::string, std::string>;

// A device by the vendor's own tool.
struct ListedDevice {
  std::string name, version;  // "Vulkan 1.3"
  uint64_t memory = 0;        // bytes
  bool software = false, unified = false;
};

inline Environment with_cache(Environment drivers) {
  static int n = 0;
  const std::string cache = temporary_path("program-cache-" + std::to_string(n++));
  std::filesystem::remove_all(cache);
  drivers["XDG_CACHE_HOME"] = cache;
  return drivers;
}

inline Ran gimbal_with(const Args& args, const Environment& environment) {
  RunSetup setup;
  setup.environment = environment;
  return gimbal(args, setup);
}

inline Json backend_of(const Json& all, const std::string& name) {
  for (const Json& b : all["backends"])
    if (b["backend"] == name) return b;
  ADD_FAILURE() << name << " is not in the list";
  return {};
}

inline void check_listed(const std::string& backend, const std::vector<ListedDevice>& told,
                         const Environment& drivers) {
  const Json listed = backend_of(json_of(gimbal_with({"backends", "--json"}, with_cache(drivers))), backend);
  ASSERT_TRUE(listed["available"]) << listed.dump(2);
  ASSERT_EQ(listed["devices"].size(), told.size()) << listed.dump(2);
  for (size_t i = 0; i < told.size(); i++) {
    const Json& d = listed["devices"][i];
    EXPECT_EQ(d["id"], format("{}:{}", backend, i));
    EXPECT_EQ(d["name"], told[i].name);
    EXPECT_EQ(d["memory_total"], told[i].memory);
    EXPECT_LE(d["memory_free"], told[i].memory);
    EXPECT_EQ(d["software"], told[i].software);
    EXPECT_EQ(d["unified_memory"], told[i].unified);
    if (!told[i].version.empty()) { EXPECT_EQ(d["compute_capability"], told[i].version); }
  }
}

inline const Args& short_story() {
  static const Args args{"run", story_file("f32"), "-p",   story()["prompt"], "--greedy", "-n",
                         "4",   "--verify",        "never"};
  return args;
}
// `ran`: the JSON of a run of short_story().
inline void expect_the_story(const Json& ran) {
  const std::vector<int> tokens = ran["tokens"], greedy = story()["greedy"];
  EXPECT_TRUE(!tokens.empty() && std::equal(tokens.begin(), tokens.end(), greedy.begin()))
      << ran["tokens"].dump();
}

// Asked for by name, with and without the permission to use a device that emulates a GPU on the CPU.
inline void check_asked_for(const std::string& backend, bool software, const Environment& drivers) {
  const Environment e = with_cache(drivers);
  const std::string id = backend + ":0";
  for (const char* option : {"--backend", "--gpu-backend"}) {
    const Json used = json_of(gimbal_with(
        with(short_story(), {option, backend, "--allow-software-devices", "--strict", "--json"}), e));
    EXPECT_EQ(used["device"], id) << used.dump(2);
    ASSERT_FALSE(used["kernels"].empty());
    for (const Json& k : used["kernels"]) EXPECT_EQ(k["device"], id) << k.dump();
    expect_the_story(used);
  }
  const Json automatic = json_of(gimbal_with(with(short_story(), {"--json"}), e));
  if (!software) return;
  EXPECT_EQ(automatic["device"], "cpu:0") << "an emulated GPU is never taken by itself";
  const Ran soft = gimbal_with(with(short_story(), {"--backend", backend}), e);
  EXPECT_EQ(soft.code, 0) << soft.err;
  EXPECT_SAYS(soft.err,
              "emulates a GPU on the CPU (--allow-software-devices allows it); using cpu:0 instead");
  const Ran strict = gimbal_with(with(short_story(), {"--backend", backend, "--strict"}), e);
  EXPECT_EQ(strict.code, 4);
  EXPECT_EQ(strict.out, "");
  EXPECT_SAYS(strict.err, "--strict: the requested backend '" + backend + "' is not available");
}

// Layers by number: those of the model, no more, and where they are is said.
inline void check_layers_by_number(const std::string& backend, const Environment& drivers) {
  const Environment e = with_cache(drivers);
  for (const auto& [asked, given] : {std::pair("2", 2), {"5", 5}, {"99", 5}, {"-1", 5}}) {
    const Args args = with(
        short_story(), {"--backend", backend, "--allow-software-devices", "--gpu-layers", asked, "--json"});
    const Ran r = gimbal_with(args, e);
    EXPECT_SAYS(r.err, format("offloaded {}/5 layers to {}:0\n", given, backend));
    EXPECT_FALSE(contains(gimbal_with(with(args, {"--quiet"}), e).err, "offloaded"));
    const Json j = json_of(r);
    expect_the_story(j);
    uint64_t attentions[2] = {0, 0};  // on the CPU, and on the GPU
    for (const Json& k : j["kernels"])
      if (k["op"] == "attention") attentions[k["device"] == backend + ":0"] += k["runs"].get<uint64_t>();
    ASSERT_GT(attentions[1], 0u);
    EXPECT_EQ(attentions[0] * given, attentions[1] * (5 - given)) << "one a layer and step";
  }
}

// The experts of a mixture on the CPU: the same tokens, and a reason for each device.
inline void check_experts_on_the_cpu(const std::string& backend, const Environment& drivers) {
  const Environment e = with_cache(drivers);
  const Args run{"run",      golden_dir() + "/arch/gpt-oss.gguf",
                 "--tokens", "1,5,9,12",
                 "-n",       "8",
                 "--greedy", "--print-tokens",
                 "--quiet"};
  const Args moved{"--backend", backend, "--allow-software-devices", "--cpu-moe"};
  const Ran there = gimbal_with(with(run, moved), e);
  EXPECT_EQ(there.code, 0) << there.err;
  EXPECT_EQ(there.out, gimbal_with(with(run, {"--backend", "cpu"}), e).out);
  const Ran plan = gimbal_with(with({"plan", run[1]}, moved), e);
  EXPECT_SAYS(plan.out, " on cpu:0 (--cpu-moe)\n");
  EXPECT_SAYS(plan.out, format(" on {}:0 (asked for)\n", backend));
}

// Nothing of PATH is needed: the libraries are opened, no tool is run.
inline void check_without_path(const std::string& backend, const Environment& drivers) {
  Environment e = with_cache(drivers);
  e["PATH"] = "/nonexistent";
  EXPECT_TRUE(backend_of(json_of(gimbal_with({"backends", "--json"}, e)), backend)["available"]);
}

// The same program before and after a driver is installed; what it remembers of the first time does not
// matter.
inline void check_driver_arrives(const std::string& backend, const Environment& before,
                                 const Environment& after) {
  Environment e = with_cache(before);
  const Args run = with(short_story(), {"--backend", backend, "--allow-software-devices", "--json"});
  for (int again = 0; again < 2; again++) {
    const Ran r = gimbal_with(run, e);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(json_of(r)["device"], "cpu:0");
    EXPECT_SAYS(r.err, "note: " + backend + ": no device found: ");
  }
  for (const auto& [name, value] : before) e.erase(name);
  for (const auto& [name, value] : after) e[name] = value;
  EXPECT_EQ(json_of(gimbal_with(run, e))["device"], backend + ":0");
}

// The program of this backend alone.
inline void check_worker(const std::string& backend, int devices, const Environment& drivers) {
  RunSetup setup;
  setup.environment = with_cache(drivers);
  for (const auto& [name, value] : quiet_home()) setup.environment.emplace(name, value);
  const auto worker = [&](const std::string& option, int index) {
    return run_program({std::string(GIMBAL_WORKER_FOLDER) + "/gimbal-worker-" + backend, "--model",
                        story_file("f32"), "-p", story()["prompt"], "--greedy", "-n", "3", "--print-tokens",
                        "--stats", option, std::to_string(index)},
                       setup);
  };
  for (const std::string& option : {std::string("--device"), "--" + backend + "-device"}) {
    for (int i = 0; i < devices; i++) {
      const Ran r = worker(option, i);
      EXPECT_EQ(r.code, 0) << r.err;
      EXPECT_SAYS(r.err, format("{}:{}, ", backend, i));
      EXPECT_EQ(joined(story()["greedy"]).find(r.out.substr(0, r.out.size() - 1)), 0u) << r.out;
    }
    const Ran none = worker(option, devices);
    EXPECT_EQ(none.code, 4);
    EXPECT_EQ(none.out, "");
    EXPECT_SAYS(none.err, format("there is no {} device {}: found", backend, devices));
  }
}

}  // namespace gimbal::test
