// What goes wrong with a driver: each "no" has its reason and its remedy, each error number its name, each
// failing call the words of what was being done; and what is lost stays lost. Included by a test of each
// vendor, which defines Subject.
#pragma once
#include "backends/driver_api/fake.h"
#include "device/reason.h"
#include "discovery/registry.h"
#include "gpu/test_device.h"

namespace gimbal::gpu {
namespace {

using test::expect_words;
using test::fake;
using test::fake_library;
using test::FakeControl;
using test::open_fake;

std::string sym(const char* cuda, const char* hip) { return Subject::symbol(cuda, hip); }

// What a refused opening says, and the remedy.
std::string refusal(const char* reason, const std::string& variant = "whole") {
  std::unique_ptr<Runtime> runtime;
  const Failure f = open_fake(Subject::vendor(), &runtime, "", variant);
  EXPECT_EQ(f.code, Failure::Unsupported) << f.text;
  EXPECT_STREQ(f.reason, reason) << f.text;
  EXPECT_EQ(runtime, nullptr);
  EXPECT_EQ(std::count(f.text.begin(), f.text.end(), '\n'), 1) << f.text;
  return f.text;
}

// ---- no driver, no device

TEST(NoDriver, IsTheLibraryThatIsMissing) {
  driver_api::Vendor elsewhere = Subject::vendor();
  const char* const nothing[] = {"libgimbal_has_no_such.so.1", "libgimbal_neither.so", nullptr};
  elsewhere.libraries = nothing;
  EXPECT_EQ(driver_api::device_count(elsewhere), 0);
  driver_api::Driver d;
  const Failure f = open_driver(elsewhere, "", &d);
  EXPECT_EQ(f.code, Failure::Unsupported);
  expect_words(f.text, {std::string(Subject::vendor().maker) + " driver is not installed",
                        "libgimbal_has_no_such.so.1", "libgimbal_neither.so", "No such file", "\ninstall "});
  EXPECT_STREQ(f.reason, reason::kLibraryMissing);
  elsewhere.libraries = nothing + 2;
  expect_words(open_driver(elsewhere, "", &d).text,
               {std::string(Subject::vendor().maker) + " makes no driver for this system", "\nuse another"});
  const Failure path = open_driver(Subject::vendor(), "/nonexistent/driver.so", &d);
  EXPECT_EQ(path.code, Failure::Unsupported);
  expect_words(path.text, {"/nonexistent/driver.so cannot be opened", "\ngive library="});
  EXPECT_STREQ(path.reason, reason::kLibraryMissing);
}

TEST(NoDriver, IsALibraryWithoutItsFunctions) {
  expect_words(refusal(reason::kDriverTooOld, "empty"),
               {fake_library("empty"), "lacks " + sym("cuInit", "hipInit") + " and ", " other functions",
                "\ninstall "});
  const std::string old = refusal(reason::kDriverTooOld, "old");
  expect_words(old,
               {"lacks " + sym("cuStreamWaitEvent", "hipStreamWaitEvent") + ": it is too old", "\ninstall "});
}

TEST(NoDriver, IsOneThatIsTooOld) {
  const FakeControl& control = fake();
  control.set_version(Subject::vendor().oldest_version - 1);
  expect_words(refusal(reason::kDriverTooOld), {"is too old: it offers " + sym("CUDA 10.9", "HIP 4.99.99999"),
                                                "and " + sym("11.0", "5.0.0") + " is needed", "\ninstall "});
  control.set_version(Subject::vendor().oldest_version);
  std::unique_ptr<Runtime> runtime;
  EXPECT_FALSE(open_fake(Subject::vendor(), &runtime));
}

TEST(NoDevice, HasAReasonForEachAnswer) {
  const FakeControl& control = fake();
  std::set<std::string> reasons, remedies;
  auto because = [&](const std::string& symbol, int error, std::initializer_list<std::string> words) {
    control.reset();
    control.fail(symbol.c_str(), error, 0);
    // 34: the toolkit's stub instead of the library. 35 and 36: a driver in the kernel that is too old for
    // it.
    const std::string text = refusal(error == 34                  ? reason::kLibraryMissing
                                     : error == 35 || error == 36 ? reason::kDriverTooOld
                                                                  : reason::kNoDevice);
    expect_words(text, words);
    expect_words(text, {symbol, std::to_string(error)});
    reasons.insert(text.substr(0, text.find('\n'))), remedies.insert(text.substr(text.find('\n') + 1));
  };
  const std::string init = sym("cuInit", "hipInit"), count = sym("cuDeviceGetCount", "hipGetDeviceCount");
  const std::string look = sym("nvidia-smi", "/dev/kfd");
  because(init, 100,
          {"is installed, but sees no device", sym("CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice"), look});
  because(count, 100, {"is installed, but sees no device", look});
  because(init, 999, {"does not start", sym("CUDA_ERROR_UNKNOWN", "hipErrorUnknown"), "dmesg", look});
  because(init, 3, {"does not start", "could not be initialized", look});
  because(init, 304, {"files under /dev", look});
  Subject::refuse_more(because);
  EXPECT_EQ(reasons.size(), 5u + Subject::kMoreReasons);
  EXPECT_EQ(remedies.size(), 1u + Subject::kMoreRemedies);
  control.reset();
  control.set_devices(0);
  expect_words(refusal(reason::kNoDevice), {"sees no device", look});
}

TEST(NoDevice, HasNumbersThatExist) {
  const FakeControl& control = fake();
  control.set_devices(2);
  std::unique_ptr<Runtime> runtime;
  for (int index : {-1, 2, 99}) {
    const Failure f = open_fake(Subject::vendor(), &runtime, "", "whole", index);
    EXPECT_EQ(f.code, Failure::Invalid);
    EXPECT_STREQ(f.reason, reason::kNoDevice);
    expect_words(f.text, {"no device " + std::to_string(index), "has 2 (0 to 1)"});
  }
}

// As a user meets it: the library under its own name, found as the fake (see fake_driver.cmake).
TEST(NoDevice, IsReportedByTheRegistry) {
  const std::string name = Subject::kBackend;
  const FakeControl& control = fake();
  control.set_devices(0);
  auto opened = open_device({name, 0, true, ""});
  ASSERT_FALSE(opened);
  expect_words(opened.error().message, {name, "sees no device"});
  EXPECT_STREQ(opened.error().reason, reason::kNoDevice);
  for (const BackendReport& r : discover_backends())
    if (r.backend == name) {
      EXPECT_FALSE(r.available);
      EXPECT_EQ(r.reason, "no-device");
      expect_words(r.message, {"sees no device"});
      expect_words(r.remedy, {sym("nvidia-smi", "/dev/kfd")});
    }
  control.reset();
  control.set_version(Subject::vendor().oldest_version - 1);
  opened = open_device({name, 0, true, ""});
  ASSERT_FALSE(opened);
  EXPECT_STREQ(opened.error().reason, reason::kDriverTooOld);
  for (const BackendReport& r : discover_backends())
    if (r.backend == name) {
      EXPECT_EQ(r.reason, "driver-too-old");
      EXPECT_EQ(r.remedy, Subject::vendor().update_driver);
    }
  control.reset();
  opened = open_device({name, 0, true, ""});
  ASSERT_TRUE(opened) << opened.error().message;
  expect_words(opened->device->describe().name, {"fake"});
  // One that is elsewhere, while the usual one has no device; and none.
  control.set_devices(0);
  fake("no_graphs");
  opened = open_device({name, 0, true, "library=" + fake_library("no_graphs")});
  ASSERT_TRUE(opened) << opened.error().message;
  opened = open_device({name, 0, true, "library=/nonexistent/driver.so"});
  ASSERT_FALSE(opened);
  expect_words(opened.error().message, {"/nonexistent/driver.so cannot be opened"});
  EXPECT_STREQ(opened.error().reason, reason::kLibraryMissing);
  control.reset();
  for (const char* options : {"graphs=2", "colour=red"}) {
    auto refused = open_device({name, 0, true, options});
    ASSERT_FALSE(refused);
    expect_words(refused.error().message, {std::string(options).substr(0, 6)});
  }
}

// ---- error numbers

struct Known {
  int number;
  const char *cuda, *hip;
};
constexpr Known kKnown[] = {
#define DRIVER_ERROR(number, cuda, hip, code, meaning) {number, cuda, hip},
#include "gpu/driver_api/errors.def"
#undef DRIVER_ERROR
};

TEST(Errors, AreNamedForPeople) {
  const FakeControl& control = fake();
  int named = 0;
  for (const Known& k : kKnown) {
    const std::string name = sym(k.cuda, k.hip);
    if (name.empty()) continue;
    control.reset();
    std::unique_ptr<Runtime> runtime;
    ASSERT_FALSE(open_fake(Subject::vendor(), &runtime));
    control.fail(sym("cuEventSynchronize", "hipEventSynchronize").c_str(), k.number, 0);
    const Failure f = runtime->wait();
    EXPECT_TRUE(f) << k.number;
    expect_words(f.text, {Subject::vendor().name, "fake GPU 0",
                          "computing: ", sym("cuEventSynchronize", "hipEventSynchronize") + " gave " + name,
                          "error " + std::to_string(k.number) + ")"});
    EXPECT_EQ(f.text.find('\n'), std::string::npos);
    named++;
  }
  std::printf("%d error numbers\n", named);
  EXPECT_EQ(named, Subject::kErrors);
  control.fail(sym("cuEventSynchronize", "hipEventSynchronize").c_str(), 31337, 0);
  std::unique_ptr<Runtime> runtime;
  control.reset();
  ASSERT_FALSE(open_fake(Subject::vendor(), &runtime));
  control.fail(sym("cuEventSynchronize", "hipEventSynchronize").c_str(), 31337, 0);
  const Failure f = runtime->wait();
  EXPECT_EQ(f.code, Failure::Invalid);
  expect_words(f.text, {"error 31337", "does not know"});
}

TEST(Errors, HaveTheirCodes) {
  auto code = [](int error) { return failure_of(Subject::vendor(), "f", error).code; };
  EXPECT_EQ(code(0), Failure::None);
  EXPECT_EQ(code(2), Failure::OutOfMemory);
  for (int lost : {4, 214, 700, 702, 709, 710, 719, 999}) EXPECT_EQ(code(lost), Failure::DeviceLost) << lost;
  for (int no : {3, 100, 101, 209, 701, 801}) EXPECT_EQ(code(no), Failure::Unsupported) << no;
  for (int ours : {1, 200, 400, 500, 900, 901, 904}) EXPECT_EQ(code(ours), Failure::Invalid) << ours;
}

// ---- calls that fail

// All that an engine does with a runtime; the first failure.
Failure whole_life() {
  std::unique_ptr<Runtime> runtime;
  if (Failure f = open_fake(Subject::vendor(), &runtime)) return f;
  Buffer *x = nullptr, *y = nullptr;
  Recording* r = nullptr;
  std::vector<float> data(1024, 1.f), back(1024);
  Failure f = runtime->allocate(4096, &x);
  if (!f) f = runtime->allocate(4096, &y);
  if (!f) f = runtime->write(x, 0, data.data(), 4096);
  Launch l;
  if (!f) f = runtime->load(Subject::kernel("add"), &l.kernel);
  if (!f) {
    l.binding[0] = {x, 0, 4096}, l.binding[1] = {x, 0, 4096}, l.binding[2] = {y, 0, 4096},
    l.step = {x, 0, 16};
    Launch both[] = {l, l};  // two at once
    both[1].after_all = false;
    f = runtime->record(both, &r);
  }
  if (!f) f = runtime->replay(r);
  if (!f) f = runtime->wait();
  if (!f) f = runtime->read(y, 0, back.data(), 4096);
  if (r) runtime->discard(r);
  runtime->release(x), runtime->release(y);
  return f;
}

TEST(FailingCalls, AreTheFailureOfWhatWasDone) {
  const FakeControl& control = fake();
  ASSERT_FALSE(whole_life());
  // Calls that release something have no way to report; the free bytes of memory are only a fact.
  const std::set<std::string> silent = {sym("cuDevicePrimaryCtxRelease_v2", ""),
                                        sym("cuMemGetInfo_v2", "hipMemGetInfo"),
                                        sym("cuMemFree_v2", "hipFree"),
                                        sym("cuStreamDestroy_v2", "hipStreamDestroy"),
                                        sym("cuEventDestroy_v2", "hipEventDestroy"),
                                        sym("cuModuleUnload", "hipModuleUnload"),
                                        sym("cuGraphExecDestroy", "hipGraphExecDestroy"),
                                        sym("cuGraphDestroy", "hipGraphDestroy")};
  int failures = 0, functions = 0;
  auto every_call_of = [&](const char* cuda, const char* hip) {
    const std::string symbol = sym(cuda, hip);
    control.reset();
    ASSERT_FALSE(whole_life());
    const int calls = control.calls(symbol.c_str());
    if (symbol.empty() || symbol == "hipGetDeviceProperties" ||
        symbol == sym("cuMemGetInfo_v2", "hipMemGetInfo"))
      return;
    EXPECT_GT(calls, 0) << symbol;
    functions++;
    for (int error : {1, 719})
      for (int after = 0; after < calls; after++) {
        control.reset();
        control.fail(symbol.c_str(), error, after);
        const Failure f = whole_life();
        if (silent.count(symbol)) continue;
        // What turns to the device before something is given back is not heard either.
        if (!f && symbol == sym("cuCtxSetCurrent", "hipSetDevice")) continue;
        ASSERT_TRUE(f || symbol == "hipGetDevicePropertiesR0600")
            << symbol << " failed unheard, call " << after;
        failures++;
        if (f && symbol != sym("cuInit", "hipInit")) expect_words(f.text, {symbol, std::to_string(error)});
        if (error != 1) continue;  // a lost device keeps nothing
        EXPECT_EQ(control.allocated(), 0u) << symbol << ", call " << after;
        EXPECT_LE(control.handles(), 0) << symbol << ", call " << after;
      }
  };
#define FUNCTION(name, cuda, hip, ...) every_call_of(cuda, hip);
#define OPTIONAL(name, cuda, hip, ...) every_call_of(cuda, hip);
#define CUDA_ONLY(name, cuda, ...) every_call_of(cuda, "");
#define HIP_ONLY(name, hip, ...) every_call_of("", hip);
#include "gpu/driver_api/functions.def"
#undef FUNCTION
#undef OPTIONAL
#undef CUDA_ONLY
#undef HIP_ONLY
  std::printf("%d functions, %d failures\n", functions, failures);
  EXPECT_EQ(functions, Subject::kFunctions);
}

TEST(Memory, RunsOutWithNumbersAndGoesOn) {
  const FakeControl& control = fake();
  control.set_memory(1 << 20);
  std::unique_ptr<Runtime> runtime;
  ASSERT_FALSE(open_fake(Subject::vendor(), &runtime));
  Buffer *a = nullptr, *b = nullptr;
  ASSERT_FALSE(runtime->allocate(600000, &a));
  const Failure f = runtime->allocate(500000, &b);
  EXPECT_EQ(f.code, Failure::OutOfMemory);
  EXPECT_EQ(b, nullptr);
  expect_words(f.text, {"500000 bytes were requested", "448576 of 1048576 are free",
                        sym("CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory")});
  ASSERT_FALSE(runtime->allocate(400000, &b));
  runtime->release(a), runtime->release(b);
}

TEST(LostDevice, IsFoundAndStaysLost) {
  const FakeControl& control = fake();
  for (const char* options : {"", "graphs=0"}) {
    control.reset();
    std::unique_ptr<Runtime> runtime;
    ASSERT_FALSE(open_fake(Subject::vendor(), &runtime, options));
    Buffer* x = nullptr;
    ASSERT_FALSE(runtime->allocate(4096, &x));
    Launch l;
    ASSERT_FALSE(runtime->load(Subject::kernel("add"), &l.kernel));
    l.binding[0] = l.binding[1] = l.binding[2] = {x, 0, 4096}, l.step = {x, 0, 16};
    Recording* r = nullptr;
    ASSERT_FALSE(runtime->record({&l, 1}, &r));
    for (int i = 0; i < 3; i++) ASSERT_FALSE(runtime->replay(r));
    ASSERT_FALSE(runtime->wait());
    control.lose(1, 719);
    EXPECT_FALSE(runtime->replay(r));
    EXPECT_FALSE(runtime->replay(r));
    Failure f = runtime->wait();
    EXPECT_EQ(f.code, Failure::DeviceLost);
    expect_words(f.text, {sym("CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure"), "computing"});
    const int asked = control.calls(sym("cuEventSynchronize", "hipEventSynchronize").c_str());
    uint32_t word = 0;
    EXPECT_EQ(runtime->replay(r).text, f.text);
    EXPECT_EQ(runtime->wait().text, f.text);
    EXPECT_EQ(runtime->read(x, 0, &word, 4).code, Failure::DeviceLost);
    EXPECT_EQ(runtime->write(x, 0, &word, 4).code, Failure::DeviceLost);
    Buffer* y = nullptr;
    EXPECT_EQ(runtime->allocate(4, &y).code, Failure::DeviceLost);
    EXPECT_EQ(control.calls(sym("cuEventSynchronize", "hipEventSynchronize").c_str()), asked)
        << "a lost device is asked no more";
    EXPECT_EQ(runtime->facts().memory_total, uint64_t(1) << 30);
    runtime->discard(r), runtime->release(x);
  }
}

TEST(Kernels, ThatCannotBeLoadedSayWhich) {
  const FakeControl& control = fake();
  std::unique_ptr<Runtime> runtime;
  ASSERT_FALSE(open_fake(Subject::vendor(), &runtime));
  Kernel* k = nullptr;
  KernelCode code = Subject::kernel("add");
  control.fail(sym("cuModuleLoadDataEx", "hipModuleLoadDataEx").c_str(), 218, 0);
  Failure f = runtime->load(code, &k);
  EXPECT_EQ(f.code, Failure::Unsupported);
  expect_words(f.text, {"loading a kernel", "(kernel add)", "cannot compile"});
  if (Subject::vendor().api == driver_api::Api::Cuda)
    expect_words(f.text, {"the driver's compiler: ptxas fake, line 3"});
  code.name = "no_such_kernel";
  f = runtime->load(code, &k);
  EXPECT_EQ(f.code, Failure::Invalid);
  expect_words(f.text, {"no_such_kernel", "nothing of that name"});
  code.code = {};
  EXPECT_EQ(runtime->load(code, &k).code, Failure::Invalid);
  EXPECT_EQ(k, nullptr);
}

}  // namespace
}  // namespace gimbal::gpu
