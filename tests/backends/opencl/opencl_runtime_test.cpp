// OpenCL on whatever devices this machine has (PoCL in CI): the example kernels, the programs that are kept
// in a folder, and what happens when a call of the driver fails.
#define TESTED_BACKEND "opencl"
#include "backends/opencl/runtime.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "gpu/device_main.h"
#include "gpu/example_checks.h"

namespace gimbal::gpu {
std::span<const KernelCode> example_opencl_modules();
std::span<const KernelCode> rounding_opencl_modules();
std::span<const KernelCode> toy_opencl_modules();
}  // namespace gimbal::gpu

namespace gimbal::opencl {
namespace {

namespace fs = std::filesystem;
using gpu::Failure;

Api loaded() {
  Api api;
  const Failure f = Api::load(kLibrary, &api);
  EXPECT_FALSE(f) << f.text;
  return api;
}
std::unique_ptr<Opencl> opened(const Api& api, int index = 0, const Options& options = {}) {
  std::unique_ptr<Opencl> runtime;
  const Failure f = open(api, index, options, &runtime);
  EXPECT_FALSE(f) << f.text;
  return runtime;
}

TEST(OpenclDevices, RunTheExamples) {
  const Api api = loaded();
  std::vector<Found> found;
  ASSERT_FALSE(find_devices(api, &found));
  for (size_t i = 0; i < found.size(); i++) {
    auto runtime = opened(api, int(i));
    ASSERT_TRUE(runtime);
    const gpu::Facts& f = runtime->facts();
    std::printf("%zu: %s, %s, %llu MiB, bindings of %llu MiB%s\n", i, f.name.c_str(), f.driver.c_str(),
                static_cast<unsigned long long>(f.memory_total >> 20),
                static_cast<unsigned long long>(f.max_binding_bytes >> 20), f.software ? ", software" : "");
    EXPECT_FALSE(f.name.empty());
    EXPECT_FALSE(f.driver.empty());
    EXPECT_GE(f.max_binding_bytes, 128u << 20);  // what OpenCL 1.2 promises
    EXPECT_GE(f.memory_total, f.max_binding_bytes / 4);
    EXPECT_EQ(f.software, (found[i].type & CL_DEVICE_TYPE_CPU) != 0);
    gpu::check_examples(*runtime, gpu::example_opencl_modules());
    gpu::check_rounding(*runtime, gpu::rounding_opencl_modules());
    gpu::check_toy(*runtime, gpu::toy_opencl_modules());
  }
}

// As on a device whose own division and roots are not exact: the same bits.
TEST(OpenclDevices, CorrectDivisionAndRoots) {
  Api api = loaded();
  static decltype(api.clGetDeviceInfo) real;
  real = api.clGetDeviceInfo;
  api.clGetDeviceInfo = [](cl_device_id d, cl_device_info what, size_t n, void* at, size_t* size) {
    const cl_int e = real(d, what, n, at, size);
    if (what == CL_DEVICE_SINGLE_FP_CONFIG && at)
      *static_cast<cl_device_fp_config*>(at) &= ~cl_device_fp_config(CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
    return e;
  };
  auto runtime = opened(api);
  ASSERT_TRUE(runtime);
  gpu::check_examples(*runtime, gpu::example_opencl_modules());
  gpu::check_rounding(*runtime, gpu::rounding_opencl_modules());
}

// PoCL 3.1 has no sub-groups. Here its device says that it has them, and its compiler finds their functions
// in `definitions`.
Api with_subgroups(const char* definitions) {
  static decltype(Api::clGetDeviceInfo) real_info;
  static decltype(Api::clCreateProgramWithSource) real_source;
  static const char* before;
  Api api = loaded();
  real_info = api.clGetDeviceInfo, real_source = api.clCreateProgramWithSource, before = definitions;
  api.clGetDeviceInfo = [](cl_device_id d, cl_device_info what, size_t n, void* at, size_t* size) {
    if (what != CL_DEVICE_EXTENSIONS) return real_info(d, what, n, at, size);
    static constexpr char kKnown[] = "cl_khr_subgroups cl_khr_subgroup_shuffle";
    if (size) *size = sizeof kKnown;
    if (at) memcpy(at, kKnown, sizeof kKnown);
    return cl_int(CL_SUCCESS);
  };
  api.clCreateProgramWithSource = [](cl_context c, cl_uint, const char** text, const size_t* bytes,
                                     cl_int* e) {
    const std::string whole = before + std::string(text[0], bytes[0]);
    const char* at = whole.data();
    const size_t size = whole.size();
    return real_source(c, 1, &at, &size, e);
  };
  return api;
}

TEST(OpenclSubgroups, AreUsedWhereTheDriverHasThemAndTheyJoinTheRightLanes) {
  const struct {
    const char *what, *definitions;
    bool used;
  } drivers[] = {
      {"of one lane: nothing is exchanged",
       "#define get_max_sub_group_size() 1u\n#define sub_group_shuffle_xor(v, d) (v)\n", true},
      {"a size that is no power of two",
       "#define get_max_sub_group_size() 24u\n#define sub_group_shuffle_xor(v, d) (v)\n", true},
      {"every lane gets its own value",
       "#define get_max_sub_group_size() 8u\n#define sub_group_shuffle_xor(v, d) (v)\n", false},
      {"functions that are not there", "", false},
  };
  for (const auto& d : drivers) {
    SCOPED_TRACE(d.what);
    auto runtime = opened(with_subgroups(d.definitions));
    ASSERT_TRUE(runtime);
    gpu::check_examples(*runtime, gpu::example_opencl_modules());
    EXPECT_EQ(runtime->subgroups(), d.used);
    Options without;
    without.no_subgroups = true;
    auto plain = opened(with_subgroups(d.definitions), 0, without);
    ASSERT_TRUE(plain);
    gpu::check_examples(*plain, gpu::example_opencl_modules());
    EXPECT_FALSE(plain->subgroups());
  }
}

TEST(OpenclDevices, BindAtAnyWord) {
  auto runtime = opened(loaded());
  ASSERT_TRUE(runtime);
  EXPECT_EQ(runtime->facts().binding_alignment, 4u);
  gpu::TestDevice device(*runtime, gpu::example_opencl_modules());
  std::vector<float> x(20);
  for (size_t i = 0; i < x.size(); i++) x[i] = float(i);
  gpu::Buffer* b = device.buffer(x);
  gpu::Launch l =
      device.launch("scaled_sum", {{b, 12, 8}, {b, 20, 8}}, gpu::ScaledSumParams{0, 0, 2, 100.f}, 1);
  gpu::Buffer* steps = device.buffer(std::vector<int32_t>{9, 9, 9, 3, 4});
  l.step = {steps, 12, 8};
  ASSERT_FALSE(device.run({l}));
  const auto got = device.contents<float>(b, 20);
  EXPECT_EQ(got[5], 106.f);
  EXPECT_EQ(got[6], 108.f);
  EXPECT_EQ(got[4], 4.f);
  EXPECT_EQ(got[7], 7.f);
  std::vector<float> row(1);
  gpu::Buffer* y = device.buffer(std::vector<float>(8, -1.f));
  gpu::Launch sums = device.launch("row_sum", {{b, 0, 80}, {y, 4, 28}}, gpu::RowSumParams{4, 0}, 5);
  sums.step = {steps, 12, 8};  // three rows
  ASSERT_FALSE(device.run({sums}));
  EXPECT_EQ(device.contents<float>(y, 8), (std::vector<float>{-1, 6, 225, 38, -1, -1, -1, -1}));
}

class KeptPrograms : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  Programs::Counts run(const Api& api) {
    auto runtime = opened(api, 0, {folder_.string()});
    if (!runtime) return {};
    gpu::check_row_sums(*runtime, gpu::example_opencl_modules());
    return runtime->programs();
  }
  void expect(const Api& api, uint64_t compiled, uint64_t loaded, const char* why) {
    const auto counts = run(api);
    EXPECT_EQ(counts.compiled, compiled) << why;
    EXPECT_EQ(counts.loaded, loaded) << why;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& e : fs::directory_iterator(folder_)) all.push_back(e.path());
    return all;
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / ("gimbal_opencl_" + std::to_string(getpid())) / "programs";
};

TEST_F(KeptPrograms, AreCompiledOnce) {
  const Api api = loaded();
  expect(api, 1, 0, "an empty folder");
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(files()[0].filename().string().substr(0, 8), "row_sum-");
  expect(api, 0, 1, "kept");
}

TEST_F(KeptPrograms, AreCompiledAnewWhenTheyAreDamagedOrForeign) {
  const Api api = loaded();
  run(api);
  ASSERT_EQ(files().size(), 1u);
  const fs::path file = files()[0];
  const auto size = fs::file_size(file);
  fs::resize_file(file, size / 2);
  expect(api, 1, 0, "half a file");
  expect(api, 0, 1, "replaced");
  {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(std::streamoff(size - 100));
    f.put('\x55').put('\x55').put('\x55');
  }
  expect(api, 1, 0, "other bytes in the program");
  std::ofstream(file, std::ios::trunc);
  expect(api, 1, 0, "an empty file");

  Api other = api;  // the same device with a newer driver
  static decltype(api.clGetDeviceInfo) real;
  real = api.clGetDeviceInfo;
  other.clGetDeviceInfo = [](cl_device_id d, cl_device_info what, size_t n, void* at, size_t* size) {
    const cl_int e = real(d, what, n, at, size);
    if (what == CL_DRIVER_VERSION && at && n) *static_cast<char*>(at) = '9';
    return e;
  };
  expect(other, 1, 0, "another driver");
  EXPECT_EQ(files().size(), 2u);
  other.clCreateProgramWithBinary = [](cl_context, cl_uint, const cl_device_id*, const size_t*,
                                       const unsigned char**, cl_int*,
                                       cl_int* e) -> cl_program { return *e = CL_INVALID_BINARY, nullptr; };
  expect(other, 1, 0, "a driver that does not take it");
}

TEST_F(KeptPrograms, NeedAFolder) {
  fs::create_directories(folder_.parent_path());
  { std::ofstream f(folder_); }
  std::unique_ptr<Opencl> runtime;
  const Failure f = open(loaded(), 0, {folder_.string()}, &runtime);
  EXPECT_EQ(f.code, Failure::Invalid);
  EXPECT_NE(f.text.find("cache=" + folder_.string()), std::string::npos) << f.text;
  EXPECT_FALSE(runtime);
}

TEST(OpenclFailures, SayWhatTheCompilerSays) {
  auto runtime = opened(loaded());
  ASSERT_TRUE(runtime);
  const std::string_view text = "kernel void broken(global float* x) { x[0] = nonsense; }";
  gpu::KernelCode code{"broken", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, 1, 1, 1, 4};
  gpu::Kernel* kernel = nullptr;
  const Failure f = runtime->load(code, &kernel);
  EXPECT_EQ(f.code, Failure::Unsupported);
  for (const char* word : {"kernel broken", "CL_BUILD_PROGRAM_FAILURE (-11)", "nonsense"})
    EXPECT_NE(f.text.find(word), std::string::npos) << f.text;
  EXPECT_EQ(kernel, nullptr);
}

// A device that is lost is lost for everything after, with the reason that was given first.
TEST(OpenclFailures, ALostDeviceStaysLost) {
  static cl_int answer;
  for (cl_int e : {CL_OUT_OF_RESOURCES, CL_DEVICE_NOT_AVAILABLE, -9999}) {
    answer = CL_SUCCESS;
    Api api = loaded();
    static decltype(api.clFinish) real;
    real = api.clFinish;
    api.clFinish = [](cl_command_queue q) { return answer == CL_SUCCESS ? real(q) : answer; };
    auto runtime = opened(api);
    ASSERT_TRUE(runtime);
    gpu::TestDevice device(*runtime, gpu::example_opencl_modules());
    gpu::Buffer* b = device.buffer(std::vector<float>(64));
    const gpu::Launch l = device.launch("row_sum", {{b, 0, 64}, {b, 64, 64}}, gpu::RowSumParams{4, 0}, 1);
    gpu::Recording* r = nullptr;
    ASSERT_FALSE(runtime->record({&l, 1}, &r));
    ASSERT_FALSE(runtime->replay(r));
    answer = e;
    const Failure f = runtime->wait();
    EXPECT_EQ(f.code, Failure::DeviceLost);
    EXPECT_NE(f.text.find("is lost: clFinish: " + name_of(e)), std::string::npos) << f.text;
    EXPECT_NE(f.text.find(runtime->facts().name), std::string::npos) << f.text;
    answer = CL_SUCCESS;
    float v = 0;
    gpu::Buffer* more = nullptr;
    gpu::Kernel* kernel = nullptr;
    gpu::Recording* r2 = nullptr;
    for (const Failure& again :
         {runtime->wait(), runtime->replay(r), runtime->read(b, 0, &v, 4), runtime->write(b, 0, &v, 4),
          runtime->allocate(4, &more), runtime->load(gpu::example_opencl_modules()[0], &kernel),
          runtime->record({&l, 1}, &r2)}) {
      EXPECT_EQ(again.code, Failure::DeviceLost);
      EXPECT_EQ(again.text, f.text);
    }
    runtime->discard(r);
  }
}

TEST(OpenclFailures, EveryCallIsChecked) {
  const Api real = loaded();
  auto expect = [&](Api api, Failure::Code code, const char* words) {
    std::unique_ptr<Opencl> runtime;
    Failure f = open(api, 0, {}, &runtime);
    gpu::Buffer* b = nullptr;
    if (!f) f = runtime->allocate(1024, &b);
    float v = 0;
    if (!f) f = runtime->write(b, 0, &v, 4);
    gpu::Launch l;
    for (const gpu::KernelCode& k : gpu::example_opencl_modules())
      if (!f && k.name == "row_sum") f = runtime->load(k, &l.kernel);
    l.binding[0] = {b, 0, 4}, l.binding[1] = {b, 512, 4}, l.step = {b, 256, 8};
    gpu::Recording* r = nullptr;
    if (!f) f = runtime->record({&l, 1}, &r);
    if (!f) f = runtime->replay(r);
    if (!f) f = runtime->read(b, 0, &v, 4);
    EXPECT_EQ(f.code, code) << words << ": " << f.text;
    EXPECT_NE(f.text.find(words), std::string::npos) << f.text;
    if (runtime) runtime->discard(r), runtime->release(b);
  };
  expect(real, Failure::None, "");
  Api a = real;
  a.clCreateContext = [](const cl_context_properties*, cl_uint, const cl_device_id*,
                         void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*,
                         cl_int* e) -> cl_context { return *e = CL_DEVICE_NOT_AVAILABLE, nullptr; };
  expect(a, Failure::DeviceLost, "clCreateContext: CL_DEVICE_NOT_AVAILABLE (-2)");
  a = real;
  a.clCreateCommandQueue = [](cl_context, cl_device_id, cl_command_queue_properties,
                              cl_int* e) -> cl_command_queue { return *e = CL_OUT_OF_HOST_MEMORY, nullptr; };
  expect(a, Failure::OutOfMemory, "clCreateCommandQueue: CL_OUT_OF_HOST_MEMORY (-6)");
  a = real;
  a.clCreateBuffer = [](cl_context, cl_mem_flags, size_t, void*, cl_int* e) -> cl_mem {
    return *e = CL_INVALID_BUFFER_SIZE, nullptr;
  };
  expect(a, Failure::OutOfMemory, "1024 bytes requested; this driver allocates at most");
  a.clCreateBuffer = [](cl_context, cl_mem_flags, size_t, void*, cl_int* e) -> cl_mem {
    return *e = CL_MEM_OBJECT_ALLOCATION_FAILURE, nullptr;
  };
  expect(a, Failure::OutOfMemory, "clCreateBuffer of 1024 bytes: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)");
  a = real;
  a.clEnqueueFillBuffer = [](cl_command_queue, cl_mem, const void*, size_t, size_t, size_t, cl_uint,
                             const cl_event*, cl_event*) { return cl_int(CL_MEM_OBJECT_ALLOCATION_FAILURE); };
  expect(a, Failure::OutOfMemory, "clEnqueueFillBuffer of 1024 bytes");
  a = real;
  a.clEnqueueWriteBuffer = [](cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void*, cl_uint,
                              const cl_event*, cl_event*) { return cl_int(CL_OUT_OF_RESOURCES); };
  expect(a, Failure::DeviceLost, "clEnqueueWriteBuffer: CL_OUT_OF_RESOURCES (-5)");
  a = real;
  a.clEnqueueReadBuffer = [](cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint,
                             const cl_event*,
                             cl_event*) { return cl_int(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST); };
  expect(a, Failure::DeviceLost, "clEnqueueReadBuffer: CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST (-14)");
  a = real;
  a.clCreateProgramWithSource = [](cl_context, cl_uint, const char**, const size_t*,
                                   cl_int* e) -> cl_program { return *e = CL_OUT_OF_HOST_MEMORY, nullptr; };
  expect(a, Failure::OutOfMemory, "kernel row_sum: clCreateProgramWithSource");
  a = real;
  a.clCreateKernel = [](cl_program, const char*, cl_int* e) -> cl_kernel {
    return *e = CL_INVALID_KERNEL_NAME, nullptr;
  };
  expect(a, Failure::Invalid, "kernel row_sum: clCreateKernel: CL_INVALID_KERNEL_NAME (-46)");
  a = real;
  a.clSetKernelArg = [](cl_kernel, cl_uint at, size_t, const void*) {
    return cl_int(at == 4 ? CL_INVALID_ARG_SIZE : CL_SUCCESS);
  };
  expect(a, Failure::Invalid, "kernel row_sum: clSetKernelArg of argument 4: CL_INVALID_ARG_SIZE (-51)");
  a = real;
  a.clEnqueueNDRangeKernel = [](cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*,
                                const size_t*, cl_uint, const cl_event*,
                                cl_event*) { return cl_int(CL_INVALID_WORK_GROUP_SIZE); };
  a.clGetKernelWorkGroupInfo = [](cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void* at,
                                  size_t*) { return *static_cast<size_t*>(at) = 8, cl_int(CL_SUCCESS); };
  expect(a, Failure::Unsupported,
         "kernel row_sum: clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE (-54): a group has 16 lanes, "
         "but the driver allows 8");
  a = real;
  a.clFlush = [](cl_command_queue) { return cl_int(CL_INVALID_COMMAND_QUEUE); };
  expect(a, Failure::DeviceLost, "clFlush: CL_INVALID_COMMAND_QUEUE (-36)");
}

}  // namespace
}  // namespace gimbal::opencl
