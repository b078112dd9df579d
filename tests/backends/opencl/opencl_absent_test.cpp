// Machines on which OpenCL cannot be used, as they are or as a driver could be: each "no" says why, and what
// to do.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "backends/opencl/devices.h"
#include "device/reason.h"
#include "discovery/registry.h"

namespace gimbal::opencl {
namespace {

using gpu::Failure;

TEST(OpenclAbsent, TheLibraryIsMissing) {
  Api api;
  const Failure f = Api::load("libNoOpenCL.so.1", &api);
  EXPECT_EQ(f.code, Failure::Unsupported);
  for (const char* word : {"OpenCL is not installed", "libNoOpenCL.so.1", "\nInstall", "ocl-icd-libopencl1"})
    EXPECT_NE(f.text.find(word), std::string::npos) << f.text;
  EXPECT_STREQ(f.reason, reason::kLibraryMissing);
}

TEST(OpenclAbsent, TheLibraryIsSomethingElse) {
  Api api;
  const Failure f = Api::load("libm.so.6", &api);
  EXPECT_EQ(f.code, Failure::Unsupported);
  EXPECT_EQ(f.text, "libm.so.6 is too old: it has no clGetPlatformIDs, which OpenCL 1.2 has");
  EXPECT_STREQ(f.reason, reason::kDriverTooOld);
}

TEST(OpenclAbsent, ErrorsHaveNames) {
  EXPECT_EQ(name_of(CL_OUT_OF_RESOURCES), "CL_OUT_OF_RESOURCES (-5)");
  EXPECT_EQ(name_of(-1001), "CL_PLATFORM_NOT_FOUND_KHR (-1001)");
  EXPECT_EQ(name_of(-9999), "error -9999");
  EXPECT_FALSE(failure(CL_SUCCESS, "x"));
  EXPECT_EQ(failure(CL_OUT_OF_RESOURCES, "x").code, Failure::OutOfMemory);
  EXPECT_EQ(failure_of_commands(CL_OUT_OF_RESOURCES, "x").code, Failure::DeviceLost);
}

// ---- drivers that there could be
struct Fake {
  cl_int platforms = CL_SUCCESS, devices = CL_SUCCESS;
  std::vector<cl_device_type> types{CL_DEVICE_TYPE_GPU};
  const char *version = "OpenCL 3.0 fake", *profile = "FULL_PROFILE";
  cl_bool available = CL_TRUE, compiler = CL_TRUE;
  size_t lanes = 1024;
  cl_ulong shared = 32768, memory = uint64_t(8) << 30, piece = uint64_t(2) << 30;
  cl_device_fp_config floats = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN | CL_FP_DENORM;
  const char *name = "  Fake GPU ", *extensions = "";
  std::vector<std::pair<cl_device_info, cl_uint>> numbers = {};
  cl_uint pci[4] = {1, 0x65, 2, 3};
  unsigned char topology[24] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0, 1};
};
Fake fake;

Api fake_api() {
  Api api;
  api.clGetPlatformIDs = [](cl_uint n, cl_platform_id* ids, cl_uint* count) {
    if (fake.platforms != CL_SUCCESS) return fake.platforms;
    if (count) *count = 1;
    if (n) ids[0] = reinterpret_cast<cl_platform_id>(&fake);
    return CL_SUCCESS;
  };
  api.clGetPlatformInfo = [](cl_platform_id, cl_platform_info, size_t n, void* at, size_t* size) {
    if (size) *size = 14;
    if (n) memcpy(at, "Fake platform", 14);
    return CL_SUCCESS;
  };
  api.clGetDeviceIDs = [](cl_platform_id, cl_device_type, cl_uint n, cl_device_id* ids, cl_uint* count) {
    if (fake.devices != CL_SUCCESS) return fake.devices;
    if (count) *count = cl_uint(fake.types.size());
    for (cl_uint i = 0; i < n; i++) ids[i] = reinterpret_cast<cl_device_id>(&fake.types[i]);
    return CL_SUCCESS;
  };
  api.clGetDeviceInfo = [](cl_device_id d, cl_device_info what, size_t n, void* at, size_t* size) {
    auto give = [&](const void* v, size_t bytes) {
      if (size) *size = bytes;
      if (at && n >= bytes) memcpy(at, v, bytes);
      return cl_int(at && n < bytes ? CL_INVALID_VALUE : CL_SUCCESS);
    };
    auto text = [&](const char* s) { return give(s, strlen(s) + 1); };
    const cl_bool yes = CL_TRUE;
    switch (what) {
      case CL_DEVICE_NAME: return text(fake.name);
      case CL_DEVICE_VERSION: return text(fake.version);
      case CL_DRIVER_VERSION: return text("1.2.3");
      case CL_DEVICE_PROFILE: return text(fake.profile);
      case CL_DEVICE_TYPE: return give(d, sizeof(cl_device_type));
      case CL_DEVICE_AVAILABLE: return give(&fake.available, 4);
      case CL_DEVICE_COMPILER_AVAILABLE: return give(&fake.compiler, 4);
      case CL_DEVICE_ENDIAN_LITTLE: return give(&yes, 4);
      case CL_DEVICE_MAX_WORK_GROUP_SIZE: return give(&fake.lanes, sizeof fake.lanes);
      case CL_DEVICE_LOCAL_MEM_SIZE: return give(&fake.shared, 8);
      case CL_DEVICE_GLOBAL_MEM_SIZE: return give(&fake.memory, 8);
      case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return give(&fake.piece, 8);
      case CL_DEVICE_SINGLE_FP_CONFIG: return give(&fake.floats, sizeof fake.floats);
      case CL_DEVICE_EXTENSIONS: return text(fake.extensions);
      default:
        for (auto [question, answer] : fake.numbers)
          if (question == what) return give(&answer, 4);
        if (what == 0x410F && *fake.extensions == 'c') return give(fake.pci, sizeof fake.pci);
        if (what == 0x4037) return give(fake.topology, sizeof fake.topology);
        return cl_int(CL_INVALID_VALUE);
    }
  };
  return api;
}

// A text without a remedy is a driver's error, for which nothing is known.
void expect_reason(const Failure& f) {
  const bool old = f.text.find("is too old") != std::string::npos;
  const bool none = f.text.find("\nInstall the OpenCL driver") != std::string::npos;
  EXPECT_STREQ(f.reason, old ? reason::kDriverTooOld : none ? reason::kNoDevice : "") << f.text;
}
std::string listing(const Fake& f) {
  fake = f;
  std::vector<Found> found;
  const Failure failure = find_devices(fake_api(), &found);
  EXPECT_TRUE(!failure || failure.code == Failure::Unsupported || failure.code == Failure::OutOfMemory);
  EXPECT_EQ(!failure, !found.empty());
  expect_reason(failure);
  return failure.text;
}
std::string refusal(const Fake& f) {
  fake = f;
  std::vector<Found> found;
  EXPECT_FALSE(find_devices(fake_api(), &found));
  Described d;
  const Failure failure = describe(fake_api(), found.at(0), &d);
  EXPECT_EQ(failure.code, failure ? Failure::Unsupported : Failure::None);
  expect_reason(failure);
  return failure.text;
}

TEST(OpenclAbsent, ThereIsNoDevice) {
  EXPECT_EQ(listing({}), "");
  EXPECT_NE(listing({.platforms = -1001}).find("found no driver (CL_PLATFORM_NOT_FOUND_KHR)\nInstall"),
            std::string::npos);
  EXPECT_EQ(listing({.platforms = CL_OUT_OF_HOST_MEMORY}), "clGetPlatformIDs: CL_OUT_OF_HOST_MEMORY (-6)");
  EXPECT_NE(listing({.devices = CL_DEVICE_NOT_FOUND})
                .find("no OpenCL platform has a device (there are: Fake platform)\nInstall"),
            std::string::npos);
  EXPECT_NE(listing({.types = {}}).find("no OpenCL platform has a device"), std::string::npos);
  EXPECT_EQ(listing({.devices = CL_OUT_OF_RESOURCES}),
            "clGetDeviceIDs of platform 'Fake platform': CL_OUT_OF_RESOURCES (-5)");
}

TEST(OpenclAbsent, TheDeviceIsNotGoodEnough) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.version = "OpenCL 1.2"}), "");
  EXPECT_EQ(refusal({.version = "OpenCL 1.1 old"}),
            "OpenCL device 'Fake GPU': 'OpenCL 1.1 old' is too old, OpenCL 1.2 is needed\nUpdate the driver");
  EXPECT_NE(refusal({.version = "nonsense"}).find("'nonsense' is too old"), std::string::npos);
  EXPECT_NE(refusal({.profile = "EMBEDDED_PROFILE"}).find("EMBEDDED_PROFILE"), std::string::npos);
  EXPECT_NE(refusal({.available = CL_FALSE}).find("not available"), std::string::npos);
  EXPECT_NE(refusal({.compiler = CL_FALSE}).find("no compiler"), std::string::npos);
  EXPECT_NE(refusal({.lanes = 128}).find("at most 128 lanes, 256 are needed"), std::string::npos);
  EXPECT_NE(refusal({.shared = 8192}).find("share at most 8192 bytes, 16384 are needed"), std::string::npos);
  EXPECT_NE(refusal({.floats = CL_FP_INF_NAN}).find("does not round to nearest"), std::string::npos);
}

TEST(OpenclAbsent, FactsAreTheDrivers) {
  fake = {};
  fake.types = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_GPU,
                CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT};
  std::vector<Found> found;
  const Api api = fake_api();
  ASSERT_FALSE(find_devices(api, &found));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].type, cl_device_type(CL_DEVICE_TYPE_GPU));
  EXPECT_EQ(found[1].type, cl_device_type(CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT));
  EXPECT_EQ(found[2].type, cl_device_type(CL_DEVICE_TYPE_ACCELERATOR));
  EXPECT_EQ(found[3].type, cl_device_type(CL_DEVICE_TYPE_CPU));
  Described d;
  ASSERT_FALSE(describe(api, found[3], &d));
  EXPECT_TRUE(d.facts.software);
  EXPECT_EQ(d.build_options, "-cl-std=CL1.2 -DDIVISION_IS_EXACT=0");
  EXPECT_EQ(d.facts.name, "Fake GPU");
  EXPECT_EQ(d.facts.driver, "Fake platform 1.2.3");
  EXPECT_EQ(d.facts.memory_total, uint64_t(8) << 30);
  EXPECT_EQ(d.facts.max_binding_bytes, uint64_t(2) << 30);
  EXPECT_EQ(d.identity, "Fake platform\nFake GPU\nOpenCL 3.0 fake\n1.2.3\n");
  fake.floats |= CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  fake.piece = uint64_t(100) << 30;
  ASSERT_FALSE(describe(api, found[0], &d));
  EXPECT_FALSE(d.facts.software);
  EXPECT_EQ(d.build_options, "-cl-std=CL1.2 -DDIVISION_IS_EXACT=1 -cl-fp32-correctly-rounded-divide-sqrt");
  EXPECT_EQ(d.facts.max_binding_bytes, uint64_t(16) << 30);
  EXPECT_EQ(d.facts.max_allocation_bytes, uint64_t(100) << 30);
}

// Where it is on the bus and what it is built for: by the extensions of Khronos, NVIDIA and AMD, and nothing
// without.
TEST(OpenclAbsent, FactsNameTheDeviceWhereAnExtensionDoes) {
  auto facts = [](const Fake& f) {
    fake = f;
    std::vector<Found> found;
    Described d;
    EXPECT_FALSE(find_devices(fake_api(), &found));
    EXPECT_FALSE(describe(fake_api(), found.at(0), &d));
    return d.facts;
  };
  EXPECT_EQ(facts({}).pci_id, "");
  EXPECT_EQ(facts({}).compute_capability, "OpenCL 3.0");
  EXPECT_EQ(facts({.extensions = "cl_khr_pci_bus_info"}).pci_id, "0001:65:02.3");
  Fake nvidia;
  nvidia.extensions = "x cl_nv_device_attribute_query";
  nvidia.numbers = {{0x4000, 8}, {0x4001, 6}, {0x4008, 0x17}, {0x4009, 0x1b}, {0x400A, 2}};
  EXPECT_EQ(facts(nvidia).pci_id, "0002:17:03.3");
  EXPECT_EQ(facts(nvidia).compute_capability, "8.6");
  Fake amd;
  amd.name = "gfx1100:xnack-", amd.extensions = "x cl_amd_device_attribute_query";
  EXPECT_EQ(facts(amd).pci_id, "0000:c3:00.1");
  EXPECT_EQ(facts(amd).compute_capability, "gfx1100");
}

// The loader with no driver: this process alone, since the loader looks once. Where there is no loader
// either, that is said.
TEST(OpenclAbsent, TheBackendSaysWhy) {
  setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
  Api api;
  const bool loader = !Api::load(kLibrary, &api);
  const char* code = loader ? reason::kNoDevice : reason::kLibraryMissing;
  for (const BackendReport& r : discover_backends()) {
    if (r.backend != "opencl") continue;
    EXPECT_FALSE(r.available);
    EXPECT_EQ(r.reason, code);
    EXPECT_NE(r.message.find(loader ? "CL_PLATFORM_NOT_FOUND_KHR" : "OpenCL is not installed"),
              std::string::npos)
        << r.message;
    EXPECT_NE(r.remedy.find("Install"), std::string::npos) << r.remedy;
  }
  auto opened = open_device({"opencl", 0, true, ""});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("OpenCL"), std::string::npos) << opened.error().message;
  EXPECT_STREQ(opened.error().reason, code);
}

}  // namespace
}  // namespace gimbal::opencl
