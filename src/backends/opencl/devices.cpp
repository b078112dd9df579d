#include "backends/opencl/devices.h"

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "device/reason.h"

namespace gimbal::opencl {
namespace {

constexpr cl_int kNoPlatform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR, of the loader
// With its optimizer on, PoCL 3.1 lets cache_write_q8_0 write beyond the cache; without, or without the `if`
// around the loop that holds barriers, the same text is right. Reports that look alike:
// github.com/pocl/pocl/issues/1747, /issues/1794, /pull/2235.
constexpr std::string_view kPocl = "Portable Computing Language";
constexpr uint64_t kLanes = 256;          // the most that a kernel of the dialect has
constexpr uint64_t kSharedBytes = 16384;  // likewise

// 0 or "" where a device does not know the question.
template <class T>
T number(const Api& api, cl_device_id d, cl_device_info what) {
  T v = 0;
  return api.clGetDeviceInfo(d, what, sizeof v, &v, nullptr) == CL_SUCCESS ? v : T(0);
}
template <class Get>
std::string text_of(Get get) {
  size_t bytes = 0;
  if (get(size_t(0), nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string s(bytes, '\0');
  if (get(bytes, s.data(), nullptr) != CL_SUCCESS) return "";
  s.resize(s.find('\0') == std::string::npos ? s.size() : s.find('\0'));
  const size_t first = s.find_first_not_of(' ');
  return first == std::string::npos ? "" : s.substr(first, s.find_last_not_of(' ') - first + 1);
}
std::string text(const Api& api, cl_device_id d, cl_device_info what) {
  return text_of([&](size_t n, void* at, size_t* size) { return api.clGetDeviceInfo(d, what, n, at, size); });
}
std::string text(const Api& api, cl_platform_id p, cl_platform_info what) {
  return text_of(
      [&](size_t n, void* at, size_t* size) { return api.clGetPlatformInfo(p, what, n, at, size); });
}

struct Extensions {
  Extensions(const Api& api, cl_device_id d) : known(" " + text(api, d, CL_DEVICE_EXTENSIONS) + " ") {}
  bool has(std::string_view name) const { return known.find(format(" {} ", name)) != known.npos; }
  const std::string known;
};

// The functions of cl_khr_subgroup_shuffle are there from OpenCL C 2.0 on.
std::string for_subgroups(const Extensions& extensions, int major) {
  return extensions.has("cl_khr_subgroup_shuffle") && major >= 2 ? format("-cl-std=CL{}.0", major) : "";
}

// Where extensions tell: cl_khr_pci_bus_info, and those of NVIDIA (cl_nv_device_attribute_query) and AMD
// (cl_amd_device_attribute_query) with the numbers that their documents give.
void identify(const Api& api, cl_device_id d, const Extensions& extensions, gpu::Facts& f) {
  struct {
    cl_uint domain, bus, device, function;
  } at = {};
  bool found = extensions.has("cl_khr_pci_bus_info") &&
               api.clGetDeviceInfo(d, 0x410F, sizeof at, &at, nullptr) == CL_SUCCESS;
  if (extensions.has("cl_nv_device_attribute_query")) {
    if (const cl_uint major = number<cl_uint>(api, d, 0x4000))
      f.compute_capability = format("{}.{}", major, number<cl_uint>(api, d, 0x4001));
    const cl_uint slot = number<cl_uint>(api, d, 0x4009);
    if (!found) at = {number<cl_uint>(api, d, 0x400A), number<cl_uint>(api, d, 0x4008), slot >> 3, slot & 7};
    found = true;
  }
  if (extensions.has("cl_amd_device_attribute_query")) {
    // AMD names a device by its architecture; its features are behind a colon.
    const std::string architecture = text(api, d, CL_DEVICE_NAME);
    if (architecture.rfind("gfx", 0) == 0)
      f.compute_capability = architecture.substr(0, architecture.find(':'));
    unsigned char topology[24] = {};
    if (!found && api.clGetDeviceInfo(d, 0x4037, sizeof topology, topology, nullptr) == CL_SUCCESS &&
        topology[0] == 1)
      at = {0, topology[21], topology[22], topology[23]}, found = true;
  }
  if (found) f.pci_id = format("{:04x}:{:02x}:{:02x}.{:x}", at.domain, at.bus, at.device, at.function);
}

int place(const Found& f) {
  return f.type & CL_DEVICE_TYPE_GPU           ? 0
         : f.type & CL_DEVICE_TYPE_ACCELERATOR ? 1
         : f.type & CL_DEVICE_TYPE_CPU         ? 3
                                               : 2;
}

Failure none(std::string_view what) {
  return {Failure::Unsupported,
          format("{}\nInstall the OpenCL driver of your device's maker; "
                 "pocl-opencl-icd in Debian computes on the CPU",
                 what),
          reason::kNoDevice};
}

}  // namespace

Failure find_devices(const Api& api, std::vector<Found>* out) {
  out->clear();
  cl_uint n = 0;
  cl_int e = api.clGetPlatformIDs(0, nullptr, &n);
  if (e == kNoPlatform || (e == CL_SUCCESS && n == 0))
    return none("OpenCL's loader is installed, but it found no driver (CL_PLATFORM_NOT_FOUND_KHR)");
  if (e != CL_SUCCESS) return failure(e, "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(n);
  if (e = api.clGetPlatformIDs(n, platforms.data(), nullptr); e != CL_SUCCESS)
    return failure(e, "clGetPlatformIDs");
  std::string names;
  Failure last;  // of a platform that cannot even tell
  for (cl_platform_id p : platforms) {
    const std::string name = text(api, p, CL_PLATFORM_NAME);
    names += (names.empty() ? "" : ", ") + name;
    cl_uint count = 0;
    e = api.clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    std::vector<cl_device_id> ids(e == CL_SUCCESS ? count : 0);
    if (!ids.empty()) e = api.clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
    if (e != CL_SUCCESS) {
      if (e != CL_DEVICE_NOT_FOUND) last = failure(e, format("clGetDeviceIDs of platform '{}'", name));
      continue;
    }
    for (cl_device_id id : ids) out->push_back({p, id, number<cl_device_type>(api, id, CL_DEVICE_TYPE)});
  }
  std::stable_sort(out->begin(), out->end(),
                   [](const Found& a, const Found& b) { return place(a) < place(b); });
  if (!out->empty()) return {};
  return last ? last : none(format("no OpenCL platform has a device (there are: {})", names));
}

Failure describe(const Api& api, const Found& found, Described* out) {
  const cl_device_id d = found.id;
  gpu::Facts& f = out->facts;
  const std::string platform = text(api, found.platform, CL_PLATFORM_NAME),
                    version = text(api, d, CL_DEVICE_VERSION), driver = text(api, d, CL_DRIVER_VERSION);
  f.name = text(api, d, CL_DEVICE_NAME);
  f.driver = platform + " " + driver;
  const Extensions extensions(api, d);
  identify(api, d, extensions, f);
  out->identity = format("{}\n{}\n{}\n{}\n", platform, f.name, version, driver);

  auto cannot = [&](std::string why, const char* reason = "") {
    return Failure{Failure::Unsupported, format("OpenCL device '{}': {}", f.name, why), reason};
  };
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor) != 2 || major * 10 + minor < 12)
    return cannot(format("'{}' is too old, OpenCL 1.2 is needed\nUpdate the driver", version),
                  reason::kDriverTooOld);
  if (f.compute_capability.empty()) f.compute_capability = format("OpenCL {}.{}", major, minor);
  if (!number<cl_bool>(api, d, CL_DEVICE_AVAILABLE))
    return cannot("the driver reports that it is not available");
  if (!number<cl_bool>(api, d, CL_DEVICE_COMPILER_AVAILABLE)) return cannot("its driver has no compiler");
  if (!number<cl_bool>(api, d, CL_DEVICE_ENDIAN_LITTLE)) return cannot("it is big-endian");
  if (const std::string profile = text(api, d, CL_DEVICE_PROFILE); profile != "FULL_PROFILE")
    return cannot(format("it has the {}, whose arithmetic differs from the full profile's", profile));

  const uint64_t lanes = number<size_t>(api, d, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  if (lanes < kLanes) return cannot(format("its groups have at most {} lanes, {} are needed", lanes, kLanes));
  const uint64_t shared = number<cl_ulong>(api, d, CL_DEVICE_LOCAL_MEM_SIZE);
  if (shared < kSharedBytes)
    return cannot(format("its groups share at most {} bytes, {} are needed", shared, kSharedBytes));
  const auto floats = number<cl_device_fp_config>(api, d, CL_DEVICE_SINGLE_FP_CONFIG);
  if (!(floats & CL_FP_ROUND_TO_NEAREST) || !(floats & CL_FP_INF_NAN))
    return cannot("it does not round to nearest");
  std::string common = floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                           ? " -DDIVISION_IS_EXACT=1 -cl-fp32-correctly-rounded-divide-sqrt"
                           : " -DDIVISION_IS_EXACT=0";
  if (platform == kPocl) common += " -cl-opt-disable";
  out->build_options = "-cl-std=CL1.2" + common;
  out->subgroup_options = for_subgroups(extensions, major);
  if (!out->subgroup_options.empty()) out->subgroup_options += common;

  f.memory_total = number<cl_ulong>(api, d, CL_DEVICE_GLOBAL_MEM_SIZE);
  // A word's number is 32 bits wide.
  f.max_binding_bytes =
      std::min<uint64_t>(number<cl_ulong>(api, d, CL_DEVICE_MAX_MEM_ALLOC_SIZE), uint64_t(4) << 32) / 4 * 4;
  if (const uint64_t most = number<cl_ulong>(api, d, CL_DEVICE_MAX_MEM_ALLOC_SIZE))
    f.max_allocation_bytes = most;
  f.binding_alignment = 4;  // offsets are arguments
  f.software = found.type & CL_DEVICE_TYPE_CPU;
  f.unified_memory = number<cl_bool>(api, d, CL_DEVICE_HOST_UNIFIED_MEMORY);
  return {};
}

}  // namespace gimbal::opencl
