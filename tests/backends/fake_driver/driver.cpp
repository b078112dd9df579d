// A stand-in for a vendor's driver library, for tests: FAKE_IS_HIP makes it AMD's, otherwise it is NVIDIA's.
// It is no driver and computes on no GPU: launches run the same kernels as C++, through the emulator.
#include <cstdio>
#include <cstring>
#include <string>

#include "backends/emulator/group.h"
#include "backends/fake_driver/control.h"
#include "backends/fake_driver/device.h"
#include "backends/fake_driver/modules.h"
#include "gpu/modules.h"

namespace gimbal::gpu {
std::span<const KernelCode> example_emulator_modules();
std::span<const KernelCode> rounding_emulator_modules();
}  // namespace gimbal::gpu

// The functions under the vendor's names, so that they can be written once under ours.
#define EXPORTED __attribute__((visibility("default")))
#if FAKE_IS_HIP
#define SYMBOL(cuda, hip) hip
#define CUDA_ONLY(name, cuda, ...)
#define HIP_ONLY(name, hip, ...) FUNCTION(name, "", hip, __VA_ARGS__)
#else
#define SYMBOL(cuda, hip) cuda
#define CUDA_ONLY(name, cuda, ...) FUNCTION(name, cuda, "", __VA_ARGS__)
#define HIP_ONLY(name, hip, ...)
#endif
#define OPTIONAL(name, cuda, hip, ...) FUNCTION(name, cuda, hip, __VA_ARGS__)
#define FUNCTION(name, cuda, hip, ...) \
  extern "C" EXPORTED int fake_##name(__VA_ARGS__) __asm__(SYMBOL(cuda, hip));
#include "gpu/driver_api/functions.def"
#undef FUNCTION
namespace symbols {
#define FUNCTION(name, cuda, hip, ...) constexpr const char* name = SYMBOL(cuda, hip);
#include "gpu/driver_api/functions.def"
#undef FUNCTION
}  // namespace symbols

namespace gimbal::test {
namespace {

constexpr int kInvalidValue = 1, kNotInitialized = 3, kNoDevice = 100, kInvalidDevice = 101,
              kInvalidImage = 200, kInvalidContext = 201, kNoBinaryForGpu = 209, kInvalidHandle = 400,
              kNotFound = 500, kIllegalAddress = 700;
constexpr const char* kSays = "fake driver of gimbal's tests: no GPU; kernels run through the emulator";

bool initialized = false;
thread_local bool current = false;  // whether the thread has a device to talk to

PretendedDevice& device() { return PretendedDevice::the(); }

struct Module {
  std::vector<std::string> names;
};
struct Function {
  const gpu::KernelCode* kernel;
};

const gpu::KernelCode* emulated(const std::string& name) {
  for (auto table : {gpu::emulator_modules(), gpu::matrix_emulator_modules(), gpu::tensor_emulator_modules(),
                     gpu::example_emulator_modules(), gpu::rounding_emulator_modules()})
    for (const gpu::KernelCode& k : table)
      if (k.name == name) return &k;
  return nullptr;
}

// The low byte of an AMD code object's flags (LLVM's AMDGPU usage, EF_AMDGPU_MACH).
int machine_of(const std::string& architecture) {
  const std::string name = architecture.substr(0, architecture.find(':'));
  static const std::map<std::string, int> known = {
      {"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx1030", 0x36}, {"gfx1100", 0x41}, {"gfx1201", 0x4e}};
  auto it = known.find(name);
  return it == known.end() ? -1 : it->second;
}

int run(const gpu::KernelCode& k, const uint32_t groups[3], const std::vector<uint64_t>& address,
        const std::vector<uint8_t>& params) {
  PretendedDevice& d = device();
  if (d.lose_after >= 0 && d.lose_after-- == 0) return d.lost_error;
  d.ran++;
  std::vector<void*> data;
  std::vector<uint64_t> words(k.bindings, 0);
  for (uint64_t at : address) {
    if (!d.has(at, 4)) return kIllegalAddress;
    data.push_back(reinterpret_cast<void*>(at));
  }
  static emulator::GroupRunner runner(nullptr, nullptr);
  emulator::Lane common = {};
  common.data = data.data(), common.words = words.data(), common.params = params.data();
  common.subgroup = 32;  // as in what is built for the real ones
  common.step = reinterpret_cast<const int32_t*>(address.back());
  const auto& compiled = *reinterpret_cast<const emulator::Compiled*>(k.code.data());
  for (common.group[2] = 0; common.group[2] < groups[2]; common.group[2]++)
    for (common.group[1] = 0; common.group[1] < groups[1]; common.group[1]++)
      for (common.group[0] = 0; common.group[0] < groups[0]; common.group[0]++)
        if (!runner.run(compiled, common, k.lanes).empty()) return kIllegalAddress;
  return 0;
}

int copy_text(char* out, int bytes, const std::string& text) {
  if (bytes < 1) return kInvalidValue;
  snprintf(out, size_t(bytes), "%s", text.c_str());
  return 0;
}

// Also where the real drivers ask for it: without a context nothing but asking works.
int enter(const char* symbol) { return device().enter(symbol); }
int enter_current(const char* symbol) {
  if (int e = enter(symbol)) return e;
  return current ? 0 : kInvalidContext;
}

constexpr FakeControl kControl = {
    kSays,
    [] { device().reset(), initialized = false, current = false; },
    [](int n) { device().devices = n; },
    [](uint64_t n) { device().memory = n; },
    [](int v) { device().version = v; },
    [](int v) { device().unified = v; },
    [](int major, int minor) { device().major = major, device().minor = minor; },
    [](const char* name) { device().architecture = name; },
    [](uint64_t seed) { device().seed = seed; },
    [](const char* symbol, int error, int after) {
      device().failing[symbol] = {error, after};
    },
    [](int launches, int error) { device().lose_after = launches, device().lost_error = error; },
    [](const char* symbol) { return device().calls[symbol]; },
    [] { return device().ran; },
    [] { return device().allocated(); },
    [] { return device().handles; },
};

}  // namespace
}  // namespace gimbal::test

using namespace gimbal::test;

extern "C" EXPORTED const FakeControl* fake_driver();
const FakeControl* fake_driver() { return &kControl; }

int fake_init(unsigned) {
  if (int e = enter(symbols::init)) return e;
  if (device().devices == 0) return kNoDevice;
  initialized = true;
  return 0;
}
int fake_version(int* out) {
  *out = device().version;
  return enter(symbols::version);
}
int fake_device_count(int* out) {
  *out = device().devices;
  return initialized ? enter(symbols::device_count) : kNotInitialized;
}
int fake_device(int* out, int index) {
  *out = index;
  return index >= 0 && index < device().devices ? enter(symbols::device) : kInvalidDevice;
}
int fake_device_name(char* out, int bytes, int which) {
  if (int e = enter(symbols::device_name)) return e;
  return copy_text(out, bytes, "fake GPU " + std::to_string(which) + " (" + kSays + ")");
}
int fake_device_attribute(int* out, int which, int) {
  const auto& d = device();
  *out = which == (FAKE_IS_HIP ? 16 : 18) ? d.unified : which == 75 ? d.major : which == 76 ? d.minor : -1;
  return enter(symbols::device_attribute);
}
int fake_device_memory(size_t* out, int) {
  *out = device().memory;
  return enter(symbols::device_memory);
}
int fake_device_address(char* out, int bytes, int which) {
  if (int e = enter(symbols::device_address)) return e;
  return copy_text(out, bytes, "0000:0" + std::to_string(which + 1) + ":00.0");
}

#if FAKE_IS_HIP
// As large, and the name where, ROCm 6 and ROCm 5 have it.
static int properties(void* out, size_t bytes, size_t at) {
  memset(out, 0, bytes);
  strcpy(static_cast<char*>(out), "gfx fake GPU");  // not to be taken for the architecture
  strcpy(static_cast<char*>(out) + at, device().architecture.c_str());
  return 0;
}
int fake_device_properties(void* out, int) {
  if (int e = enter(symbols::device_properties)) return e;
  return properties(out, 1472, 1160);
}
int fake_device_properties_before(void* out, int) {
  if (int e = enter(symbols::device_properties_before)) return e;
  return properties(out, 792, 396);
}
int fake_use_device(int which) {
  if (int e = enter(symbols::use_device)) return e;
  current = which >= 0 && which < device().devices;
  return current ? 0 : kInvalidDevice;
}
#else
int fake_retain_context(void** out, int) {
  if (int e = enter(symbols::retain_context)) return e;
  *out = device().keep(&initialized);
  return 0;
}
int fake_release_context(int) {
  device().calls[symbols::release_context]++;
  device().handles--;
  return 0;
}
int fake_use_context(void* context) {
  if (int e = enter(symbols::use_context)) return e;
  current = context == &initialized;
  return current ? 0 : kInvalidContext;
}
#endif

int fake_memory_info(size_t* free, size_t* total) {
  if (int e = enter_current(symbols::memory_info)) return e;
  *total = device().memory, *free = device().memory - device().allocated();
  return 0;
}
int fake_allocate(uint64_t* out, size_t bytes) {
  if (int e = enter_current(symbols::allocate)) return e;
  return device().allocate(out, bytes);
}
int fake_release(uint64_t at) {
  if (int e = enter_current(symbols::release)) return e;
  return device().release(at);
}
int fake_fill(uint64_t at, unsigned char value, size_t bytes, void* stream) {
  if (int e = enter_current(symbols::fill)) return e;
  if (!device().has(at, bytes)) return kInvalidValue;
  return device().enqueue(*static_cast<Stream*>(stream),
                          [=] { return memset(reinterpret_cast<void*>(at), value, bytes), 0; });
}
int fake_upload(uint64_t at, const void* data, size_t bytes, void* stream) {
  if (int e = enter_current(symbols::upload)) return e;
  if (!device().has(at, bytes)) return kInvalidValue;
  return device().enqueue(*static_cast<Stream*>(stream),
                          [=] { return memcpy(reinterpret_cast<void*>(at), data, bytes), 0; });
}
int fake_download(void* data, uint64_t at, size_t bytes, void* stream) {
  if (int e = enter_current(symbols::download)) return e;
  if (!device().has(at, bytes)) return kInvalidValue;
  return device().enqueue(*static_cast<Stream*>(stream),
                          [=] { return memcpy(data, reinterpret_cast<void*>(at), bytes), 0; });
}

int fake_create_stream(void** out, unsigned) {
  if (int e = enter_current(symbols::create_stream)) return e;
  auto* s = device().keep(new Stream);
  device().add(s);
  *out = s;
  return 0;
}
int fake_destroy_stream(void* stream) {
  if (int e = enter_current(symbols::destroy_stream)) return e;
  auto* s = static_cast<Stream*>(stream);
  device().remove(s);
  delete device().keep(s, -1);
  return 0;
}
// A host that waits must sleep: only for an event that was created so.
int fake_synchronize(void* event) {
  if (int e = enter_current(symbols::synchronize)) return e;
  if (!static_cast<Event*>(event)->sleeps) return kInvalidValue;
  return device().wait_for_all();
}
int fake_create_event(void** out, unsigned flags) {
  if (int e = enter_current(symbols::create_event)) return e;
  constexpr unsigned kBlockingSync = 1;  // CU_EVENT_BLOCKING_SYNC, hipEventBlockingSync
  auto* event = device().keep(new Event);
  event->sleeps = (flags & kBlockingSync) != 0;
  device().add(event);
  *out = event;
  return 0;
}
int fake_destroy_event(void* event) {
  if (int e = enter_current(symbols::destroy_event)) return e;
  auto* mine = static_cast<Event*>(event);
  device().remove(mine);
  delete device().keep(mine, -1);
  return 0;
}
int fake_record_event(void* event, void* stream) {
  if (int e = enter_current(symbols::record_event)) return e;
  return device().record(*static_cast<Event*>(event), *static_cast<Stream*>(stream));
}
int fake_wait_event(void* stream, void* event, unsigned) {
  if (int e = enter_current(symbols::wait_event)) return e;
  return device().wait(*static_cast<Stream*>(stream), *static_cast<Event*>(event));
}

int fake_load_module(void** out, const void* image, unsigned count, int* options, void** values) {
  if (int e = enter_current(symbols::load_module)) {
    for (unsigned i = 0; i + 1 < count; i++)
      if (options[i] == 5 && options[i + 1] == 6)
        snprintf(static_cast<char*>(values[i]), reinterpret_cast<size_t>(values[i + 1]),
                 "ptxas fake, line 3: what it did not like");
    return e;
  }
  Module m;
  if (FAKE_IS_HIP) {
    const auto* bytes = static_cast<const uint8_t*>(image);
    if (memcmp(bytes, ELFMAG, SELFMAG) != 0) return kInvalidImage;
    const auto object = read_code_object({bytes, elf_bytes(bytes)});
    if (!object) return kInvalidImage;
    if (int(object->machine) != machine_of(device().architecture)) return kNoBinaryForGpu;
    for (const auto& k : object->kernels) m.names.push_back(k.name);
  } else if (memcmp(image, ELFMAG, SELFMAG) == 0) {
    m.names = cubin_kernels({static_cast<const uint8_t*>(image), elf_bytes(image)});
    if (m.names.empty()) return kInvalidImage;
  } else {
    const std::string_view text(static_cast<const char*>(image));
    if (text.find(".version ") == text.npos) return kInvalidImage;
    for (const auto& k : ptx_kernels(text)) m.names.push_back(k.name);
  }
  *out = device().keep(new Module(m));
  return 0;
}
int fake_unload_module(void* module) {
  if (int e = enter_current(symbols::unload_module)) return e;
  delete device().keep(static_cast<Module*>(module), -1);
  return 0;
}
int fake_find_function(void** out, void* module, const char* name) {
  if (int e = enter_current(symbols::find_function)) return e;
  for (const std::string& known : static_cast<Module*>(module)->names)
    if (const auto* kernel = known == name ? emulated(name) : nullptr)
      return *out = const_cast<gimbal::gpu::KernelCode*>(kernel), 0;
  return kNotFound;
}
int fake_launch(void* function, unsigned x, unsigned y, unsigned z, unsigned lanes_x, unsigned lanes_y,
                unsigned lanes_z, unsigned, void* stream, void** arguments, void** more) {
  if (int e = enter_current(symbols::launch)) return e;
  const auto* k = static_cast<const gimbal::gpu::KernelCode*>(function);
  if (!k) return kInvalidHandle;
  if (!arguments || more || lanes_x != k->lanes || lanes_y != 1 || lanes_z != 1 || !x || !y || !z ||
      y > 65535 || z > 65535)
    return kInvalidValue;
  // Read now, as drivers do: the caller may change them afterwards.
  std::vector<uint64_t> address(k->bindings + 1);
  for (size_t i = 0; i < address.size(); i++) memcpy(&address[i], arguments[i], 8);
  const auto* params = static_cast<const uint8_t*>(arguments[address.size()]);
  std::vector<uint8_t> copy(params, params + k->param_bytes);
  return device().enqueue(*static_cast<Stream*>(stream), [=] {
    const uint32_t groups[3] = {x, y, z};
    return run(*k, groups, address, copy);
  });
}

int fake_begin_capture(void* stream, int) {
  if (int e = enter_current(symbols::begin_capture)) return e;
  return device().begin_capture(*static_cast<Stream*>(stream));
}
int fake_end_capture(void* stream, void** graph) {
  const int wanted = enter_current(symbols::end_capture);
  Graph* g = nullptr;
  const int error = device().end_capture(*static_cast<Stream*>(stream), &g);
  if (wanted && g) delete device().keep(g, -1);  // it has ended all the same
  *graph = wanted ? nullptr : g;
  return wanted ? wanted : error;
}
int fake_instantiate(void** out, void* graph, unsigned long long flags) {
  if (int e = enter_current(symbols::instantiate)) return e;
  if (flags) return kInvalidValue;
  *out = device().keep(new Graph(*static_cast<Graph*>(graph)));
  return 0;
}
int fake_launch_graph(void* instance, void* stream) {
  if (int e = enter_current(symbols::launch_graph)) return e;
  return device().launch(*static_cast<Graph*>(instance), *static_cast<Stream*>(stream));
}
int fake_destroy_instance(void* instance) {
  if (int e = enter_current(symbols::destroy_instance)) return e;
  delete device().keep(static_cast<Graph*>(instance), -1);
  return 0;
}
int fake_destroy_graph(void* graph) {
  if (int e = enter_current(symbols::destroy_graph)) return e;
  delete device().keep(static_cast<Graph*>(graph), -1);
  return 0;
}
