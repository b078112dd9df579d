// What users see of backends: the summary, its JSON, notes about the choice, exit codes; with plugins that
// work and fail.
#include <fcntl.h>

#include <fstream>

#include "base/host_memory.h"
#include "support/cli.h"
#include "support/fake_plugins.h"

namespace gimbal::test {
namespace {

// The program with plugins in a folder, and a cache of its own; `told`: what each fake backend shall do.
class BackendsCommandTest : public testing::Test {
 protected:
  RunSetup setup() const {
    RunSetup s;
    s.environment = {{"GIMBAL_BACKEND_PATH", folder_.path()}, {"XDG_CACHE_HOME", folder_.path() + "/cache"}};
    return s;
  }
  Ran run(Args args) const { return gimbal(std::move(args), setup()); }
  // Whether backends other than the CPU are built in: then there is more to be told.
  static bool only_cpu() {
    const Json all = json_of(gimbal({"backends", "--json"}));
    for (const Json& b : all["backends"])
      if (b["present"] && b["backend"] != "cpu") return false;
    return true;
  }
  static Json of(const Json& j, const std::string& name) {
    for (const Json& b : j["backends"])
      if (b["backend"] == name) return b;
    ADD_FAILURE() << name << " is missing";
    return {};
  }
  PluginFolder folder_;
};

const Args kShort{"run", "-p", "Once upon a time", "-n", "3", "--greedy"};

TEST_F(BackendsCommandTest, TheLoadedLibrariesAreLookedInto) {
  const Json j = json_of(run({"backends", "--libraries", "--json"}));
  ASSERT_GE(j["libraries"].size(), 2u) << "the program and the C library";
  EXPECT_EQ(std::filesystem::path(j["libraries"][0]["path"].get<std::string>()).filename(), "gimbal");
  bool libc = false;
  for (const Json& l : j["libraries"]) {
    EXPECT_FALSE(l.contains("error")) << l.dump();
    libc |= l["images"][0]["name"] == "libc.so.6";
  }
  EXPECT_TRUE(libc);
  EXPECT_FALSE(json_of(run({"backends", "--json"})).contains("libraries"));
  const Ran text = run({"backends", "--libraries"});
  EXPECT_NE(text.out.find("\nLibraries loaded now\n"), std::string::npos) << text.out;
}

TEST_F(BackendsCommandTest, ACppLibraryIsReported) {
  RunSetup s = setup();
  const Json none = json_of(gimbal({"backends", "--json"}, s))["cpp_ffi"];
  EXPECT_EQ(none["available"], false);
  EXPECT_EQ(none["reason"], "no C++ inference library was found");
  const std::string folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake-llama/whole";
  s.environment["BITNET_CROSSVAL_LIBDIR"] = folder;
  EXPECT_EQ(json_of(gimbal({"backends", "--json"}, s))["cpp_ffi"],
            Json({{"available", true}, {"path", folder + "/libllama.so"}, {"reason", ""}}));
  s.environment["BITNET_CROSSVAL_LIBDIR"] = "/nowhere";
  const Json wrong = json_of(gimbal({"backends", "--json"}, s))["cpp_ffi"];
  EXPECT_EQ(wrong["available"], false);
  EXPECT_NE(wrong["reason"].get<std::string>().find("BITNET_CROSSVAL_LIBDIR is '/nowhere'"),
            std::string::npos);
}

TEST_F(BackendsCommandTest, CapabilitiesHaveTheNamesOfTheRoadmap) {
  const Json none = json_of(run({"backends", "--json"}));
  expect_keys(none["capabilities"], {"cpu_native", "cuda", "cpp_ffi", "quantization_kernels"});
  EXPECT_EQ(none["capabilities"]["cpu_native"], true);
  EXPECT_EQ(none["capabilities"]["cpp_ffi"], false);
  Json usable = Json::array();
  for (const Json& k : none["kernels"]["names"])
    if (k["capable"]) usable.push_back(k["name"]);
  EXPECT_FALSE(usable.empty());
  EXPECT_EQ(none["capabilities"]["quantization_kernels"], usable);
  RunSetup s = setup();
  s.environment["BITNET_CROSSVAL_LIBDIR"] =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake-llama/whole";
  folder_.put("cuda", "hardware,device=Fake H100");
  const Json there = json_of(gimbal({"backends", "--json"}, s))["capabilities"];
  EXPECT_EQ(there["cpp_ffi"], true);
  EXPECT_EQ(there["cuda"], true);
}

// The first value of a line of a file of /proc: "16384 kB" of "MemTotal:       16384 kB".
std::string line_of(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return line.substr(line.find_first_not_of(" \t:", key.size()));
  return "";
}

TEST_F(BackendsCommandTest, TheCpuHasTheValuesOfThisMachine) {
  const Json d = of(json_of(run({"backends", "--json"})), "cpu")["devices"][0];
  const uint64_t total = std::stoull(line_of("/proc/meminfo", "MemTotal")) * 1024,
                 available = std::stoull(line_of("/proc/meminfo", "MemAvailable")) * 1024;
  const HostMemory limits = host_memory();  // host_memory_test
  if (limits.limited_by.empty()) {
    EXPECT_EQ(d["memory_total"], total);
    // Other programs take and give back memory meanwhile.
    EXPECT_NEAR(d["memory_free"].get<double>(), double(available), 0.1 * double(total));
  } else EXPECT_EQ(d["memory_total"], limits.total) << limits.limited_by;
  const std::string name = line_of("/proc/cpuinfo", "model name");  // not on ARM
#ifdef __x86_64__
  ASSERT_NE(name, "");
  EXPECT_EQ(d["name"], name);
#endif
  char line[200];
  std::snprintf(line, sizeof line, "    [0] %s: %.2f GB (", d["name"].get<std::string>().c_str(),
                d["memory_total"].get<double>() / 1e9);
  EXPECT_SAYS(run({"backends"}).out, std::string("\u2713 CPU (cpu)\n") + line);
}

TEST_F(BackendsCommandTest, JsonHasEveryKey) {
  folder_.put("metal",
              "hardware,unified,device=Fake "
              "M2,memory=8000000000,free=6000000000,pci=0000:01:00.0,driver=7.1,capability=3.5");
  folder_.put("webgpu", "crash");
  const Ran r = run({"backends", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  const Json j = json_of(r);
  expect_keys(j, {"backends", "automatic", "seconds"});
  for (const Json& b : j["backends"]) {
    expect_keys(b, {"backend", "name", "present", "available", "code", "reason", "remedy", "plugin",
                    "tested_hardware", "devices", "refused"});
    EXPECT_EQ(b["available"], b["code"] == "") << b.dump();
    EXPECT_EQ(b["available"], !b["devices"].empty()) << b.dump();
    for (const Json& d : b["devices"])
      expect_keys(
          d, {"id", "index", "name", "memory_total", "memory_free", "compute_capability", "driver", "pci_id",
              "same_card_as", "features", "threads", "software", "unified_memory", "kernels"});
  }
  const Json d = of(j, "metal")["devices"][0];
  EXPECT_EQ(d["id"], "metal:0");
  EXPECT_EQ(d["name"], "Fake M2");
  EXPECT_EQ(d["memory_total"], 8000000000u);
  EXPECT_EQ(d["memory_free"], 6000000000u);
  EXPECT_EQ(d["driver"], "7.1");
  EXPECT_EQ(d["pci_id"], "0000:01:00.0");
  EXPECT_EQ(d["compute_capability"], "3.5");
  EXPECT_EQ(d["unified_memory"], true);
  EXPECT_EQ(d["software"], false);
  EXPECT_EQ(of(j, "metal")["plugin"], folder_.file("metal"));
  EXPECT_EQ(of(j, "webgpu")["code"], "probe-crashed");
  EXPECT_EQ(of(j, "webgpu")["present"], true);
  EXPECT_EQ(of(j, "metal")["tested_hardware"], nullptr) << "it never ran on a Mac";
  EXPECT_EQ(of(j, "cuda")["tested_hardware"], "NVIDIA H100");
  EXPECT_EQ(of(j, "cpu")["devices"][0]["driver"], nullptr);
  expect_keys(j["automatic"], {"device", "backend", "reason", "rejected", "variants"});
  EXPECT_EQ(j["automatic"]["device"], "metal:0");
  // What it recommends is what is used.
  const Json used = json_of(run(with(kShort, {"--json", "--verify", "never", "--numerics", "fast"})));
  EXPECT_EQ(used["device"], "metal:0") << used.dump();
}

TEST_F(BackendsCommandTest, TheSummaryForPeople) {
  folder_.put("metal", "hardware,unified,device=Fake M2,memory=8000000000,free=6000000000");
  folder_.put("webgpu", "devices=0,says=no adapter/install a driver");
  for (const char* name : {"backends", "doctor", "--list-backends"}) {
    const Ran r = run({name});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out.rfind("=== Available Backends ===\n", 0), 0u);
    EXPECT_SAYS(r.out, "\u2713 Metal (metal)\n    [0] Fake M2: 8.00 GB (6.00 GB free) (unified memory)\n");
    EXPECT_SAYS(r.out,
                "\u2717 WebGPU (webgpu)\n    Error: no device found: no adapter (no-device)\n      install a "
                "driver\n");
    EXPECT_SAYS(r.out, "\u2713 CPU (cpu)\n");
    EXPECT_SAYS(r.out, "    hardware: never tested on any\n    plugin: " + folder_.file("metal"));
    EXPECT_SAYS(r.out, "    hardware: tested on Intel Xeon");
    EXPECT_SAYS(r.out, "\nRecommended backend: Metal (metal:0)\n");
  }
  EXPECT_SAYS(run({"backends", "--backend-order", "cpu"}).out, "Recommended backend: CPU (cpu:0)");
  const Ran wrong = run({"backends", "--backend-order", "cpu,gpu"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_SAYS(wrong.err, "no backend 'gpu'");
}

TEST_F(BackendsCommandTest, TheChoiceIsToldOnceAndNeverOnStdout) {
  folder_.put("metal", "hardware,device=Fake M2");
  const Args never{"--verify", "never", "--numerics", "fast"};
  Ran r = run(with(kShort, never));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_SAYS(r.err, "Metal GPU detected, using Metal backend: metal:0, Fake M2\n");
  EXPECT_FALSE(contains(r.out, "Metal"));
  EXPECT_FALSE(contains(run(with(with(kShort, never), {"--quiet"})).err, "GPU detected"));
  EXPECT_FALSE(contains(run(with(kShort, {"--backend", "cpu"})).err, "detected"));
  folder_.put("metal", "devices=0,says=no card/buy one");
  r = run(kShort);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, ", there was\n");
  EXPECT_SAYS(r.err, "No GPU acceleration available, using CPU backend\n");
  EXPECT_SAYS(r.err, "  metal: no device found: no card (buy one)\n");
  EXPECT_FALSE(contains(r.err, "cuda")) << "what is not there is no news";
  EXPECT_EQ(run(with(kShort, {"--quiet"})).err, "");
  EXPECT_EQ(run(with(kShort, {"--backend", "cpu"})).err, "");
  if (only_cpu()) { EXPECT_EQ(gimbal(kShort).err, "") << "nothing to choose from, nothing to tell"; }
}

TEST_F(BackendsCommandTest, AnAnswerThatIsBelievedIsToldWithItsDateAndHowToLookAgain) {
  folder_.put("metal", "device=Slowpipe,depends=GIMBAL_TEST_ONE");
  const std::string seen = "emulates a GPU on the CPU, seen on 20", again = "`gimbal backends` looks again";
  const Ran first = run(kShort);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_SAYS(first.err, "  metal:0: Slowpipe emulates a GPU on the CPU (--allow-software-devices");
  EXPECT_FALSE(contains(first.err, again));
  PluginFolder::tell("metal", "hardware,device=Fake M2,depends=GIMBAL_TEST_ONE");
  const Ran second = run(kShort);
  EXPECT_EQ(second.out, first.out);
  EXPECT_SAYS(second.err, seen);
  EXPECT_SAYS(second.err, again);
  EXPECT_SAYS(json_of(run({"explain", "--json"}))["device_reason"].get<std::string>(), seen);
  // The list says how to probe again, and how to see more than the automatic choice.
  EXPECT_EQ(json_of(run({"verify", "--json", "--kernel", "*rope*"}))["device"], "metal:0");
  PluginFolder::tell("metal", "device=Slowpipe,depends=GIMBAL_TEST_ONE");
  EXPECT_SAYS(run({"backends"}).out, "Slowpipe");
  EXPECT_SAYS(run(kShort).err, seen);
  PluginFolder::tell("metal", "hardware,device=Fake M2,depends=GIMBAL_TEST_ONE");
  EXPECT_FALSE(contains(run(with(kShort, {"--strict"})).err, seen));
  EXPECT_SAYS(run({"backends"}).out, "Recommended backend: Metal (metal:0)");
}

TEST_F(BackendsCommandTest, StrictIsExitCodeFourWithTheReason) {
  struct Case {
    const char *told, *says;
  };
  for (const Case& c : {Case{"crash", "SIGSEGV"},
                        {"exit", "ended the process"},
                        {"devices=0,says=asleep", "asleep"},
                        {"open-fails,says=in use", "in use"},
                        {"abi=77", "77"},
                        {"", "emulates a GPU"}}) {
    folder_.put("metal", c.told);
    const Ran strict = run(with(kShort, {"--backend", "metal", "--strict"}));
    EXPECT_EQ(strict.code, 4) << c.told << strict.err;
    EXPECT_SAYS(strict.err, "--strict");
    EXPECT_SAYS(strict.err, c.says);
    EXPECT_EQ(strict.out, "");
    const Ran prefer = run(with(kShort, {"--gpu-backend", "metal", "--quiet"}));
    EXPECT_EQ(prefer.code, 0) << prefer.err;
    EXPECT_EQ(prefer.out, ", there was\n");
    EXPECT_SAYS(prefer.err, "note: metal");
    EXPECT_SAYS(prefer.err, c.says);
    EXPECT_SAYS(prefer.err, "using cpu:0 instead");
  }
  const Ran wrong = run(with(kShort, {"--backend", "cpu", "--device", "4"}));
  EXPECT_EQ(wrong.code, 4);
  EXPECT_SAYS(wrong.err, "no device 4");
}

TEST_F(BackendsCommandTest, ACrashIsRememberedUntilBackendsAreAskedAgain) {
  folder_.put("metal", "crash");
  EXPECT_SAYS(run(kShort).err, "SIGSEGV");
  PluginFolder::tell("metal", "hardware");
  EXPECT_SAYS(run(kShort).err, "not queried again");
  EXPECT_EQ(of(json_of(run({"backends", "--json"})), "metal")["available"], true);
  EXPECT_SAYS(run(with(kShort, {"--verify", "never", "--numerics", "fast"})).err, "using Metal backend");
}

// A plugin is replaced in the running program, which reports it.
TEST_F(BackendsCommandTest, ReloadTakesAVerifiedPluginOrRefusesIt) {
  folder_.put("metal", "hardware,device=Fake M2");
  const PluginFolder other;
  const std::string plugin = other.put("metal_next", "named=metal,hardware,device=Fake M3", "v2");
  Ran r = run({"backends", "--reload", plugin});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_SAYS(r.out, format("Metal was replaced\n  before: {}\n  now: {} (build fake 2-",
                            folder_.file("metal"), plugin));
  EXPECT_SAYS(r.out, "\n  verified: ");
  EXPECT_SAYS(r.out, " kernels on metal:0\n\n=== Available Backends ===\n");
  EXPECT_SAYS(r.out, "[0] Fake M3: ");
  EXPECT_FALSE(contains(r.out, "Fake M2"));
  const Json j = json_of(run({"backends", "--json", "--reload", plugin}));
  expect_keys(j["reloaded"], {"backend", "before", "now", "draining", "devices", "kernels"});
  EXPECT_EQ(j["reloaded"]["before"]["plugin"], folder_.file("metal"));
  EXPECT_EQ(j["reloaded"]["before"]["build"], nullptr) << "it was never opened";
  EXPECT_EQ(j["reloaded"]["now"]["plugin"], plugin);
  EXPECT_EQ(j["reloaded"]["draining"], false);
  EXPECT_GT(j["reloaded"]["kernels"].get<int>(), 10);
  EXPECT_EQ(of(j, "metal")["plugin"], plugin);
  EXPECT_FALSE(json_of(run({"backends", "--json"})).contains("reloaded"));

  PluginFolder::tell("metal_next", "named=metal,hardware,crash");
  r = run({"backends", "--reload", plugin});
  EXPECT_EQ(r.code, 4);
  EXPECT_EQ(r.out, "");
  EXPECT_SAYS(r.err, format("'{}' was rejected, and nothing is replaced: it crashed", plugin));
  PluginFolder::tell("metal_next", "named=metal,hardware,wrong=rope");
  r = run({"backends", "--reload", plugin});
  EXPECT_EQ(r.code, 4);
  EXPECT_SAYS(r.err, "toy.reference.rope of metal:0: wrong numbers on this machine");
  EXPECT_EQ(run({"backends", "--reload", "/there/is/nothing.so"}).code, 4);
}

constexpr const char* kStrace = "/usr/bin/strace";

// Whether strace is here and may look at other programs.
bool can_trace() {
  return access(kStrace, X_OK) == 0 &&
         run_program({kStrace, "-qq", "-o", "/dev/null", "/bin/true"}).code == 0;
}

// The system calls of a run, which must succeed.
std::string traced(const RunSetup& setup, const std::string& calls, Args args) {
  const std::string log = temporary_path("strace.txt");
  RunSetup s = setup;
  for (const auto& [name, value] : quiet_home()) s.environment.emplace(name, value);
  s.environment["ASAN_OPTIONS"] = "detect_leaks=0";  // LeakSanitizer is a tracer itself
  Args all{kStrace, "-f", "-qq", "-o", log, "-e", "trace=" + calls, std::getenv("GIMBAL")};
  const Ran r = run_program(with(all, args), s);
  EXPECT_EQ(r.code, 0) << r.err;
  auto text = read_file(log);
  EXPECT_TRUE(text && contains(*text, "execve(")) << "strace wrote no log";
  return text ? *text : "";
}
int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) n++;
  return n;
}

TEST_F(BackendsCommandTest, NoOtherProgramIsEverStarted) {
  folder_.put("metal", "hardware"), folder_.put("webgpu", "crash"), folder_.put("rocm", "devices=0");
  if (!can_trace()) GTEST_SKIP() << "strace is not installed or not allowed here: scripts/setup.sh checks";
  const std::string calls = traced(setup(), "execve,execveat", {"backends"});
  // Its own start, and one that the trial of the sandbox tries in vain.
  EXPECT_EQ(count(calls, ") = 0"), 1) << calls;
  EXPECT_EQ(count(calls, "execve"), 1 + count(calls, "execve(\"/dev/null/x\"")) << calls;
}

TEST_F(BackendsCommandTest, TheCpuAloneOpensNothingElse) {
  folder_.put("metal", "hardware"), folder_.put("webgpu", "crash");
  if (!can_trace()) GTEST_SKIP() << "strace is not installed or not allowed here: scripts/setup.sh checks";
  const std::string calls =
      traced(setup(), "execve,openat,fork,vfork,memfd_create", with(kShort, {"--backend", "cpu"}));
  for (const char* word : {"libgimbal-backend", "libcuda", "libamdhip64", "libvulkan", "libOpenCL", "webgpu",
                           "fork(", "memfd_create("})
    EXPECT_EQ(count(calls, word), 0) << word << " in:\n" << calls;
}

}  // namespace
}  // namespace gimbal::test
