// The workers as programs: what they take, what they refuse and with which words, and that they compute.
#include <algorithm>
#include <fstream>

#include "device/backends.h"
#include "support/cli.h"

namespace gimbal::test {
namespace {

const std::vector<std::string> kWorkers = [] {
  std::vector<std::string> names;
  std::string list = GIMBAL_WORKER_NAMES;
  for (size_t at = 0, end; at < list.size(); at = end + 1) {
    end = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, end - at));
  }
  return names;
}();

// No driver is to be found but those that `environment` adds.
Ran worker(const std::string& name, Args args, std::map<std::string, std::string> environment = {}) {
  RunSetup setup;
  setup.environment = quiet_home();
  setup.environment["VK_DRIVER_FILES"] = setup.environment["OCL_ICD_VENDORS"] = "/nonexistent";
  for (const auto& [key, value] : environment) setup.environment[key] = value;
  args.insert(args.begin(), std::string(GIMBAL_WORKER_FOLDER) + "/gimbal-worker-" + name);
  return run_program(args, setup);
}

struct Asked {
  Args args;
  std::string error, remedy;
};
void expect_refused(const std::string& name, const Asked& a) {
  const Ran r = worker(name, a.args);
  EXPECT_EQ(r.code, 2) << format("{}", fmt::join(a.args, " "));
  EXPECT_EQ(r.out, "");
  EXPECT_SAYS(r.err, a.error);
  EXPECT_SAYS(r.err, a.remedy);
}

TEST(Worker, SaysWhatItIs) {
  ASSERT_FALSE(kWorkers.empty());
  for (const std::string& name : kWorkers) {
    Ran r = worker(name, {"--list-backends"});
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.out, name + "\n");
    r = worker(name, {"--build-info"});
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.out.find("gimbal-worker-" + name + " "), 0u) << r.out;
    EXPECT_SAYS(r.out, "\nbackend       " + name + ", ");
    EXPECT_EQ(r.out.find("never tested on hardware") != std::string::npos, name == "rocm" || name == "metal")
        << r.out;
    for (const char* part : {"\ncompiler ", "\noptions  ", "GIMBAL_CPU_VARIANTS=all", "\narchitectures ",
                             " qwen3moe,", "\nformats ", " q4_k,", "\nlibraries ", "PCRE2 10."})
      EXPECT_SAYS(r.out, part);
    EXPECT_EQ(r.out, worker(name, {"--build-info"}).out);
    EXPECT_EQ(worker(name, {"--help"}).code, 0);
  }
}

// What is made into main() of every worker: one call, and nothing beside it that could differ.
TEST(Worker, MainIsOneCall) {
  std::ifstream file(GIMBAL_SOURCE_DIR "/src/apps/worker/main.cpp.in");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 20);
  EXPECT_SAYS(text, "{ return gimbal::worker::run<Built>(argc, argv); }");
  EXPECT_EQ(text.find('#'), text.rfind('#')) << "one include, and no condition";
}

TEST(Worker, OptionsOfOtherBuildsAreRefusedWithTheNameOfTheBuild) {
  for (const std::string& name : kWorkers) {
    const std::string self = "gimbal-worker-" + name;
    for (const std::string other : kBackendOrder)
      if (other != name)
        expect_refused(name, {{"--model", "m.gguf", "--" + other + "-device", "1"},
                              self + " holds only '" + name + "'",
                              "gimbal-worker-" + other});
    expect_refused(name, {{"--backend", "cuda"}, "--backend chooses between backends", "use `gimbal`"});
    if (name == "cpu") {
      expect_refused(name, {{"--device", "1"}, "computes on the CPU alone", "the worker of a GPU"});
      expect_refused(name, {{"--cpu-device=0"}, "is one device", "leave it out"});
    } else {
      expect_refused(name, {{"--threads", "2"}, "computes on a GPU alone", "gimbal-worker-cpu"});
    }
  }
}

TEST(Worker, MistakesAreAnsweredWithAHint) {
  for (const std::string& name : kWorkers) {
    expect_refused(name, {{"--modl", "m.gguf"}, "has no option '--modl'", "did you mean --model?"});
    expect_refused(name, {{"-p", "x"}, "there is no model", "--model model.gguf"});
    expect_refused(
        name,
        {{"--model", "m.gguf", "-p", "x", "-n", "many"}, "-n/--max-tokens must be a whole number", "--help"});
    if (name != "cpu")
      expect_refused(name, {{"--" + name + "s-device", "0"}, "has no option", "did you mean"});
    const Ran r = worker(name, {"--model", "/nonexistent/m.gguf", "-p", "x"});
    EXPECT_EQ(r.code, 1);
    EXPECT_SAYS(r.err, "/nonexistent/m.gguf");
  }
}

TEST(Worker, TheCpusNeedsNothingButAModel) {
  if (std::find(kWorkers.begin(), kWorkers.end(), "cpu") == kWorkers.end())
    GTEST_SKIP() << "the cpu backend is not part of this build";
  const std::string prompt = story()["prompt"], whole = story()["greedy_text"];
  const Ran r = worker("cpu", {"--model", story_file("f32"), "-p", prompt, "--greedy", "-n", "64"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(whole, r.out.substr(0, r.out.size() - 1))) << r.out;
  EXPECT_GT(r.out.size(), 100u);
  const Ran ids =
      worker("cpu", {"--model", story_file("f32"), "-p", prompt, "--greedy", "-n", "64", "--print-tokens"});
  EXPECT_EQ(ids.out, joined(story()["greedy"]) + "\n");
}

TEST(Worker, AGpusComputesNowhereElse) {
  for (const std::string& name : kWorkers) {
    if (name == "cpu") continue;
    const Ran r = worker(name, {"--model", story_file("f32"), "-p", "Once", "-n", "2", "--device", "999"});
    EXPECT_EQ(r.code, 4) << name << r.out << r.err;  // of the reasons, no device 999 is the best of cases
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err.find("error: "), 0u) << r.err;
    EXPECT_GT(std::count(r.err.begin(), r.err.end(), '\n'), 1) << "a remedy is missing: " << r.err;
  }
}

#ifdef FAKE_DRIVERS
// Stand-ins for the vendors' drivers, which compute on the emulator: tests/backends/fake_driver.
TEST(Worker, AGpuIsChosenByItsNumber) {
  const std::string drivers = std::string(FAKE_DRIVERS) + "/whole";
  for (const std::string& name : kWorkers) {
    if (name != "cuda" && name != "rocm") continue;
    const std::map<std::string, std::string> there = {{"LD_LIBRARY_PATH", drivers},
                                                      {"FAKE_DRIVER_DEVICES", "3"}};
    const Args run = {"--model", story_file("f32"), "-p",     story()["prompt"], "--greedy", "-n",
                      "3",       "--print-tokens",  "--stats"};
    for (const std::string& option : {std::string("--device"), "--" + name + "-device"}) {
      for (const char* number : {"0", "2"}) {
        Args args = run;
        args.insert(args.end(), {option, number});
        const Ran r = worker(name, args, there);
        EXPECT_EQ(r.code, 0) << r.err;
        EXPECT_SAYS(r.err, format("{}:{}, fake GPU {}", name, number, number));
        EXPECT_EQ(joined(story()["greedy"]).find(r.out.substr(0, r.out.size() - 1)), 0u) << r.out;
      }
      Args args = run;
      args.insert(args.end(), {option, "7"});
      const Ran r = worker(name, args, there);
      EXPECT_EQ(r.code, 4);
      EXPECT_SAYS(r.err, "there is no " + name + " device 7: found 3 (0: fake GPU 0");
      EXPECT_SAYS(r.err, "2: fake GPU 2");
    }
  }
}
#endif

}  // namespace
}  // namespace gimbal::test
