// Which device is chosen, and why not the others: over reports made up here, so every situation can be had.
#include "discovery/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "base/format.h"

namespace gimbal {
namespace {

DeviceReport device(const std::string& backend, int index = 0) {
  DeviceReport d;
  d.index = index, d.id = format("{}:{}", backend, index), d.name = "a " + backend + " card";
  d.memory_total = 8'000'000'000, d.memory_free = 6'000'000'000;
  if (backend == "cpu") d.unified_memory = true, d.name = "a CPU";
  return d;
}

BackendReport backend(const std::string& name, std::vector<DeviceReport> devices) {
  BackendReport r;
  r.backend = name, r.present = true, r.available = !devices.empty();
  if (!r.available) r.reason = "no-device", r.message = "no device found", r.remedy = "plug one in";
  r.devices = std::move(devices);
  return r;
}

std::string id(const Result<DeviceChoice>& c) { return c ? c->id() : "error: " + c.error().message; }

const Rejection* why_not(const DeviceChoice& c, const std::string& what) {
  for (const Rejection& r : c.rejected)
    if (r.what == what) return &r;
  return nullptr;
}
std::string code(const Result<DeviceChoice>& c, const std::string& what) {
  if (!c) return "error";
  const Rejection* r = why_not(*c, what);
  return r ? r->reason : "not rejected";
}

void says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' in: " << text;
}

constexpr int kBackends = std::size(kBackendOrder);

// What the table test expects, worked out from the rules and not from the code: the name, or nothing.
struct Situation {
  unsigned there;  // bit i: kBackendOrder[i] has a device
  bool emulated, allow, strict;
  int wanted;  // -1: auto

  bool usable(int i) const { return there >> i & 1 && (i == kBackends - 1 || !emulated || allow); }
  std::string expected() const {
    if (wanted >= 0 && usable(wanted)) return kBackendOrder[wanted];
    if (wanted >= 0 && strict) return "";
    const bool cpu_first = emulated && there >> (kBackends - 1) & 1;
    if (cpu_first) return "cpu";
    for (int i = 0; i < kBackends; i++)
      if (usable(i)) return kBackendOrder[i];
    return "";
  }
};

TEST(Selection, EverySubsetOfBackendsWithEveryWish) {
  int checked = 0;
  for (unsigned there = 0; there < 1u << kBackends; there++)
    for (int flags = 0; flags < 8; flags++)
      for (int wanted = -1; wanted < kBackends; wanted++) {
        const Situation s{there, bool(flags & 1), bool(flags & 2), bool(flags & 4), wanted};
        std::vector<BackendReport> reports;
        for (int i = 0; i < kBackends; i++) {
          std::vector<DeviceReport> devices;
          if (there >> i & 1) devices.push_back(device(kBackendOrder[i]));
          for (DeviceReport& d : devices) d.software = s.emulated && i != kBackends - 1;
          reports.push_back(backend(kBackendOrder[i], std::move(devices)));
        }
        SelectionRequest request;
        request.backend = wanted < 0 ? "auto" : kBackendOrder[wanted];
        request.strict = s.strict, request.allow_software = s.allow;
        const auto choice = choose_device(reports, request);
        const std::string expected = s.expected();
        SCOPED_TRACE(format("there {:07b}, flags {:03b}, wanted {}", there, flags, request.backend));
        checked++;
        ASSERT_EQ(bool(choice), !expected.empty()) << id(choice);
        if (!choice) {
          ASSERT_EQ(choice.error().code, Code::NoBackend);
          ASSERT_FALSE(choice.error().remedy.empty());
          // Every backend that could have done it is named.
          for (int i = 0; i < kBackends; i++)
            if (wanted == i || (!s.strict || wanted < 0)) says(choice.error().message, {kBackendOrder[i]});
          continue;
        }
        ASSERT_EQ(choice->backend, expected);
        // Each device earlier in the order has a reason; a requested device that was not used is reported.
        const int chosen = int(std::find(kBackendOrder, kBackendOrder + kBackends, expected) - kBackendOrder);
        for (int i = 0; i < chosen; i++) {
          if (wanted == chosen) break;
          const bool behind_cpu = s.emulated && s.allow && there >> i & 1;
          if (behind_cpu) continue;
          const bool has = there >> i & 1;
          ASSERT_EQ(code(choice, has ? format("{}:0", kBackendOrder[i]) : kBackendOrder[i]),
                    has ? "software-device" : "no-device");
        }
        ASSERT_EQ(choice->unwanted.size(), size_t(wanted >= 0 && wanted != chosen));
        if (!choice->unwanted.empty()) { ASSERT_EQ(choice->unwanted[0].backend(), kBackendOrder[wanted]); }
      }
  EXPECT_EQ(checked, 128 * 8 * 8);
}

TEST(Selection, ARealCardComesBeforeAnIntegratedOneWithMoreMemory) {
  auto integrated = device("vulkan", 0), real = device("vulkan", 1);
  integrated.unified_memory = true, integrated.memory_total = 64'000'000'000,
  integrated.memory_free = 60'000'000'000;
  EXPECT_EQ(id(choose_device({backend("vulkan", {integrated, real})}, {})), "vulkan:1");
  // Also where the integrated one is behind a backend that is earlier in the order.
  auto apu = integrated, card = device("vulkan");
  apu.id = "rocm:0";
  EXPECT_EQ(id(choose_device({backend("rocm", {apu}), backend("vulkan", {card})}, {})), "vulkan:0");
  // But before the CPU, and before everything when it was asked for.
  EXPECT_EQ(id(choose_device({backend("rocm", {apu}), backend("cpu", {device("cpu")})}, {})), "rocm:0");
  SelectionRequest rocm;
  rocm.backend = "rocm";
  EXPECT_EQ(id(choose_device({backend("rocm", {apu}), backend("vulkan", {card})}, rocm)), "rocm:0");
}

TEST(Selection, TheLargerOfTwoCardsThenTheFirst) {
  auto small = device("cuda", 0), large = device("cuda", 1), equal = device("cuda", 2);
  large.memory_total = equal.memory_total = 80'000'000'000;
  EXPECT_EQ(id(choose_device({backend("cuda", {small, large, equal})}, {})), "cuda:1");
}

TEST(Selection, MemoryDecidesWhereItIsKnown) {
  auto full = device("cuda", 0), free = device("vulkan", 0), unknown = device("opencl", 0);
  full.memory_free = 1'000'000'000, unknown.memory_free.reset();
  const auto cpu = backend("cpu", {device("cpu")});
  SelectionRequest r;
  r.bytes = 6'000'000'000;
  auto c = choose_device({backend("cuda", {full}), backend("vulkan", {free}), cpu}, r);
  EXPECT_EQ(id(c), "vulkan:0");
  EXPECT_EQ(code(c, "cuda:0"), "not-enough-memory");
  says(why_not(*c, "cuda:0")->message, {"6.00 GB", "1.00 GB", "8.00 GB"});
  EXPECT_EQ(id(choose_device({backend("cuda", {full}), backend("opencl", {unknown}), cpu}, r)), "opencl:0")
      << "an unknown value refuses no device";
  r.bytes++;
  EXPECT_EQ(id(choose_device({backend("vulkan", {free}), cpu}, {})), "vulkan:0") << "no need, no refusal";
  const auto none = choose_device({backend("vulkan", {free}), cpu}, r);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::OutOfMemory);
  EXPECT_STREQ(none.error().reason, "not-enough-memory");
  says(none.error().message, {"vulkan:0", "cpu:0"});

  r.backend = "cuda", r.bytes = 6'000'000'000;
  c = choose_device({backend("cuda", {full}), cpu}, r);
  EXPECT_EQ(id(c), "cpu:0");
  ASSERT_EQ(c->unwanted.size(), 1u);
  says(c->unwanted[0].sentence(), {"cuda:0: ", "6.00 GB is needed"});
  r.strict = true;
  c = choose_device({backend("cuda", {full}), cpu}, r);
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Code::NoBackend) << "--strict is exit code 4, whatever the reason";
  EXPECT_STREQ(c.error().reason, "not-enough-memory");
  says(c.error().message, {"cuda", "6.00 GB is needed"});
  ASSERT_EQ(c.error().changes.size(), 1u);
  EXPECT_STREQ(c.error().changes[0].field, "strict");
}

TEST(Selection, ACardSeenTwiceIsOneCard) {
  auto cuda = device("cuda"), vulkan = device("vulkan"), other = device("vulkan", 1);
  cuda.pci_id = vulkan.pci_id = "0000:01:00.0", other.pci_id = "0000:02:00.0";
  const auto cpu = backend("cpu", {device("cpu")});
  std::vector<BackendReport> reports{backend("cuda", {cuda}), backend("vulkan", {vulkan, other}), cpu};
  SelectionRequest r;
  EXPECT_EQ(id(choose_device(reports, r)), "cuda:0");
  // Full as the one, it is full as the other, whatever that one says.
  r.bytes = 5'000'000'000, reports[0].devices[0].memory_free = 1;
  auto c = choose_device(reports, r);
  EXPECT_EQ(id(c), "vulkan:1");
  EXPECT_EQ(code(c, "vulkan:0"), "duplicate-device");
  says(why_not(*c, "vulkan:0")->message, {"the same card as cuda:0"});
  // The way to it may be broken; the other way is another chance.
  r = {};
  r.failed.push_back({"cuda:0", "open-failed", "CUDA_ERROR_UNKNOWN", ""});
  c = choose_device(reports, r);
  EXPECT_EQ(id(c), "vulkan:0");
  EXPECT_EQ(code(c, "cuda:0"), "open-failed");
  r = {};
  r.backend = "vulkan";
  EXPECT_EQ(id(choose_device(reports, r)), "vulkan:0") << "it was asked for";
  r.backend = "auto", r.order = {"vulkan"};
  EXPECT_EQ(id(choose_device(reports, r)), "vulkan:0");
  c = choose_device({reports[0], backend("opencl", {}), cpu}, r);
  EXPECT_EQ(id(c), "cuda:0");

  mark_duplicates(reports, full_order({}));
  EXPECT_EQ(reports[0].devices[0].duplicate_of, "");
  EXPECT_EQ(reports[1].devices[0].duplicate_of, "cuda:0");
  EXPECT_EQ(reports[1].devices[1].duplicate_of, "");
  mark_duplicates(reports, full_order({"vulkan"}));
  EXPECT_EQ(reports[0].devices[0].duplicate_of, "vulkan:0");
  EXPECT_EQ(reports[1].devices[0].duplicate_of, "");
  // Twice behind one backend, as with two OpenCL drivers.
  std::vector<BackendReport> twice{backend("opencl", {vulkan, cuda})};
  mark_duplicates(twice, full_order({}));
  EXPECT_EQ(twice[0].devices[1].duplicate_of, "vulkan:0");
}

TEST(Selection, TheOrderCanBeChanged) {
  const std::vector<BackendReport> all{backend("cuda", {device("cuda")}),
                                       backend("vulkan", {device("vulkan")}),
                                       backend("cpu", {device("cpu")})};
  SelectionRequest r;
  r.order = {"vulkan"};
  EXPECT_EQ(id(choose_device(all, r)), "vulkan:0");
  r.order = {"webgpu", "opencl"};
  EXPECT_EQ(id(choose_device(all, r)), "cuda:0") << "what is left out follows as usual";
  r.order = {"cpu", "cuda"};
  auto c = choose_device(all, r);
  EXPECT_EQ(id(c), "cpu:0");
  EXPECT_TRUE(c->rejected.empty());
  EXPECT_EQ(full_order({"opencl", "toy", "opencl"}),
            (std::vector<std::string>{"opencl", "toy", "cuda", "rocm", "metal", "vulkan", "webgpu", "cpu"}));
}

TEST(Selection, BackendsInNoOrderAreTakenOnlyByName) {
  const std::vector<BackendReport> reports{backend("toy", {device("toy")}), backend("cpu", {device("cpu")})};
  SelectionRequest r;
  EXPECT_EQ(id(choose_device(reports, r)), "cpu:0");
  EXPECT_FALSE(choose_device({reports[0]}, r));
  r.backend = "toy";
  EXPECT_EQ(id(choose_device(reports, r)), "toy:0");
  r.backend = "auto", r.order = {"toy"};
  EXPECT_EQ(id(choose_device(reports, r)), "toy:0");
}

TEST(Selection, SoftwareDevicesComeBehindTheCpu) {
  auto emulated = device("vulkan");
  emulated.software = true;
  const auto vulkan = backend("vulkan", {emulated}), cpu = backend("cpu", {device("cpu")});
  SelectionRequest r;
  r.allow_software = true;
  EXPECT_EQ(id(choose_device({vulkan, cpu}, r)), "cpu:0");
  EXPECT_EQ(id(choose_device({vulkan}, r)), "vulkan:0");
  r.backend = "vulkan";
  EXPECT_EQ(id(choose_device({vulkan, cpu}, r)), "vulkan:0");
  r.allow_software = false;
  auto c = choose_device({vulkan, cpu}, r);
  EXPECT_EQ(id(c), "cpu:0");
  ASSERT_EQ(c->unwanted.size(), 1u);
  EXPECT_EQ(c->unwanted[0].reason, "software-device");
  says(c->unwanted[0].sentence(), {"vulkan:0", "emulates a GPU", "'allow_software_devices'"});
  // A real one beside it is simply taken.
  c = choose_device({backend("vulkan", {emulated, device("vulkan", 1)}), cpu}, r);
  EXPECT_EQ(id(c), "vulkan:1");
  EXPECT_TRUE(c->unwanted.empty());
}

TEST(Selection, DeviceNumbers) {
  const auto cuda = backend("cuda", {device("cuda", 0), device("cuda", 1)}),
             cpu = backend("cpu", {device("cpu")});
  SelectionRequest r;
  r.backend = "cuda", r.device = 1;
  EXPECT_EQ(id(choose_device({cuda, cpu}, r)), "cuda:1");
  for (int wrong : {2, -1, INT32_MAX, INT32_MIN}) {
    r.device = wrong;
    for (bool strict : {false, true}) {
      r.strict = strict;
      const auto c = choose_device({cuda, cpu}, r);
      ASSERT_FALSE(c) << wrong;
      EXPECT_EQ(c.error().code, Code::NoBackend);
      says(c.error().message, {"'cuda'", format("no device {}", wrong).c_str(), "has 2 (0 to 1)"});
    }
  }
  r.strict = false;
  // The number belonged to what was asked for.
  r.device = 5;
  EXPECT_EQ(id(choose_device({backend("cuda", {}), cpu}, r)), "cpu:0");
  // Exactly the requested device, or a report of the fallback.
  auto emulated = device("cuda", 1);
  emulated.software = true;
  r.device = 1;
  auto c = choose_device({backend("cuda", {device("cuda"), emulated}), cpu}, r);
  EXPECT_EQ(id(c), "cpu:0");
  EXPECT_EQ(c->unwanted.size(), 1u);
  // Without a name it is a number of the first backend with a usable device.
  r = {};
  r.device = 1;
  c = choose_device({backend("rocm", {}), cuda, cpu}, r);
  EXPECT_EQ(id(c), "cuda:1");
  EXPECT_EQ(c->why, "first available in the automatic order");
  r.device = 7;
  c = choose_device({backend("rocm", {}), cpu}, r);
  ASSERT_FALSE(c);
  says(c.error().message, {"'cpu' has no device 7", "has 1"});
  c = choose_device({backend("rocm", {})}, r);
  ASSERT_FALSE(c);
  says(c.error().message, {"no backend can be used", "rocm: no device found (plug one in)"});
  // And a fallback from that number says so.
  c = choose_device({backend("rocm", {}), backend("cuda", {device("cuda"), emulated}), cpu},
                    {"auto", 1, false, false, 0, {}, {}});
  EXPECT_EQ(id(c), "cpu:0");
  EXPECT_EQ(code(c, "rocm"), "no-device");
  EXPECT_EQ(code(c, "cuda:1"), "software-device");
}

TEST(Selection, DevicesThatDoNotOpen) {
  auto cuda = backend("cuda", {device("cuda", 1)});
  cuda.refused.push_back({0, "open-failed", "it is in exclusive use", "stop the other program"});
  const auto cpu = backend("cpu", {device("cpu")});
  auto c = choose_device({cuda, cpu}, {});
  EXPECT_EQ(id(c), "cuda:1");
  SelectionRequest r;
  r.backend = "cuda", r.device = 0;
  c = choose_device({cuda, cpu}, r);
  EXPECT_EQ(id(c), "cpu:0");
  ASSERT_EQ(c->unwanted.size(), 1u);
  EXPECT_EQ(c->unwanted[0].sentence(), "cuda:0: it is in exclusive use (stop the other program)");
  // Tried and failed.
  r = {};
  r.failed = {{"cuda:1", "verification-failed", "3 kernels give wrong numbers", ""}};
  c = choose_device({cuda, cpu}, r);
  EXPECT_EQ(id(c), "cpu:0");
  EXPECT_EQ(code(c, "cuda:1"), "verification-failed");
  EXPECT_EQ(code(c, "cuda:0"), "open-failed");
  EXPECT_EQ(c->why, "first available in the automatic order");
}

// The devices' own reasons are the backend's.
TEST(Selection, ABackendWhoseDevicesAreAllRefusedIsNamedByThem) {
  auto cuda = backend("cuda", {});
  for (int i : {0, 1}) cuda.refused.push_back({i, "open-failed", format("card {} is broken", i), ""});
  const auto c = choose_device({cuda, backend("cpu", {device("cpu")})}, {});
  EXPECT_EQ(id(c), "cpu:0");
  ASSERT_EQ(c->rejected.size(), 2u);
  EXPECT_EQ(c->rejected[0].sentence(), "cuda:0: card 0 is broken");
  EXPECT_EQ(c->rejected[1].sentence(), "cuda:1: card 1 is broken");
}

}  // namespace
}  // namespace gimbal
