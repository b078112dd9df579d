#include "gpu/driver_api/driver.h"

#include <dlfcn.h>

#include <cstring>
#include <vector>

#include "base/format.h"
#include "device/reason.h"

namespace gimbal::gpu::driver_api {
namespace {

const KnownError* known(const Vendor& v, int error) {
  for (const KnownError& e : v.errors)
    if (e.number == error && *e.name) return &e;
  return nullptr;
}

Failure unsupported(const char* reason, std::string what, const std::string& remedy) {
  return {Failure::Unsupported, std::move(what) + "\n" + remedy, reason};
}

// The names of the functions that are missing, of those that must be there.
class Finder {
 public:
  Finder(void* library, const char* const* names) : library_(library), names_(names) {}

  // The next one in the order of functions.def.
  template <class F>
  void find(Entry<F>* entry, bool needed, bool* there = nullptr) {
    entry->symbol = *names_++;
    if (!*entry->symbol) return;
    entry->call = reinterpret_cast<decltype(entry->call)>(dlsym(library_, entry->symbol));
    if (entry->call) return;
    if (there) *there = false;
    if (needed) missing_.push_back(entry->symbol);
  }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  void* const library_;
  const char* const* names_;
  std::vector<std::string> missing_;
};

std::vector<std::string> find_functions(void* library, Driver* out) {
  Finder finder(library, out->vendor->functions);
  Functions& f = out->functions;
  out->graphs = true;
#define FUNCTION(name, cuda, hip, ...) finder.find(&f.name, true);
#define OPTIONAL(name, cuda, hip, ...) finder.find(&f.name, false, &out->graphs);
#define CUDA_ONLY(name, cuda, ...) finder.find(&f.name, true);
#define HIP_ONLY(name, hip, ...) finder.find(&f.name, false);
#include "gpu/driver_api/functions.def"
#undef FUNCTION
#undef OPTIONAL
#undef CUDA_ONLY
#undef HIP_ONLY
  std::vector<std::string> missing = finder.missing();
  if (out->vendor->api == Api::Hip) {
    if (!f.use_device.call) missing.push_back(f.use_device.symbol);
    if (!f.device_properties.call && !f.device_properties_before.call)
      missing.push_back(f.device_properties_before.symbol);
  }
  return missing;
}

// The first library that can be opened. It is never unloaded: drivers start threads of their own.
Failure open_library(const Vendor& v, const std::string& path, void** handle, std::string* name) {
  std::string why;
  auto attempt = [&](const char* candidate) {
    *name = candidate;
    *handle = dlopen(candidate, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    // The first reason is the one that counts: the others are older names.
    if (const char* e = *handle ? nullptr : dlerror(); e && why.empty()) why = e;
    return *handle != nullptr;
  };
  if (!path.empty()) {
    if (attempt(path.c_str())) return {};
    return {Failure::Unsupported,
            format("{} cannot be opened ({})\ngive library= the path of {}'s driver library, or leave it out",
                   path, why, v.maker),
            reason::kLibraryMissing};
  }
  if (!*v.libraries)
    return unsupported(reason::kLibraryMissing, format("{} makes no driver for this system", v.maker),
                       "use another backend here");
  std::string all;
  for (const char* const* candidate = v.libraries; *candidate; ++candidate) {
    if (attempt(*candidate)) return {};
    all += (all.empty() ? "" : " or ") + std::string(*candidate);
  }
  return unsupported(reason::kLibraryMissing,
                     format("the {} driver is not installed: no {} can be opened ({})", v.maker, all, why),
                     v.get_driver);
}

std::string gave(const Vendor& v, const char* symbol, int error) {
  const KnownError* e = known(v, error);
  return format("{} gave {}error {}", symbol, e ? format("{}, ", e->name) : "", error);
}

// A driver that answers, but has nothing to offer: each reason with its own remedy.
Failure no_use(const Driver& d, const char* symbol, int error) {
  const Failure f = failure_of(*d.vendor, symbol, error);
  // Without a device, AMD's hipInit returns "invalid device".
  if (error == 100 || (error == 101 && d.vendor->api == Api::Hip))
    return unsupported(reason::kNoDevice,
                       format("the {} driver is installed, but sees no device ({})", d.vendor->maker,
                              gave(*d.vendor, symbol, error)),
                       d.vendor->no_device);
  if (error == 34)
    return unsupported(
        reason::kLibraryMissing,
        format("{} is the stub of the {} toolkit, not a driver ({})", d.library, d.vendor->name,
               gave(*d.vendor, symbol, error)),
        format(
            "remove the toolkit's folder 'stubs' from LD_LIBRARY_PATH, so that the driver's own {} is found",
            d.vendor->libraries[0]));
  if (error == 35 || error == 36) return unsupported(reason::kDriverTooOld, f.text, d.vendor->update_driver);
  return unsupported(reason::kNoDevice, format("the {} driver does not start: {}", d.vendor->maker, f.text),
                     d.vendor->no_device);
}

// The offset of the architecture's name depends on the version of AMD's struct of properties. All versions
// begin with the device's name; after it, only the architecture's name begins with "gfx".
std::string architecture_of(const Driver& d, int device) {
  std::vector<char> properties(16384);  // ten times the largest version
  const Functions& f = d.functions;
  auto ask = f.device_properties.call ? f.device_properties.call : f.device_properties_before.call;
  if (ask(properties.data(), device)) return "";
  for (size_t i = 256; i + 256 < properties.size(); i++)
    if (!memcmp(&properties[i], "gfx", 3)) {
      std::string name(&properties[i], strnlen(&properties[i], 255));
      return name.substr(0, name.find(':'));
    }
  return "";
}

}  // namespace

Failure failure_of(const Vendor& v, const char* symbol, int error) {
  if (!error) return {};
  const KnownError* e = known(v, error);
  if (!e)
    return {Failure::Invalid, format("the {} driver failed: {}, which this version of gimbal does not know",
                                     v.maker, gave(v, symbol, error))};
  return {e->code, format("{} ({})", e->meaning, gave(v, symbol, error))};
}

Failure open_driver(const Vendor& v, const std::string& path, Driver* out) {
  void* library = nullptr;
  out->vendor = &v;
  if (Failure f = open_library(v, path, &library, &out->library)) return f;
  if (const auto missing = find_functions(library, out); !missing.empty())
    return unsupported(
        reason::kDriverTooOld,
        format("{} lacks {}{}: it is too old, or no driver of {}", out->library, missing[0],
               missing.size() > 1 ? format(" and {} other functions", missing.size() - 1) : "", v.maker),
        v.update_driver);
  const Functions& f = out->functions;
  if (int e = f.init.call(0)) return no_use(*out, f.init.symbol, e);
  if (int e = f.version.call(&out->version)) return no_use(*out, f.version.symbol, e);
  if (out->version < v.oldest_version)
    return unsupported(reason::kDriverTooOld,
                       format("the {} driver is too old: it offers {} {}, and {} is needed", v.maker, v.name,
                              v.version_text(out->version), v.version_text(v.oldest_version)),
                       v.update_driver);
  if (int e = f.device_count.call(&out->devices)) return no_use(*out, f.device_count.symbol, e);
  if (out->devices < 1)
    return unsupported(reason::kNoDevice, format("the {} driver is installed, but sees no device", v.maker),
                       v.no_device);
  return {};
}

Failure examine(const Driver& d, int index, Gpu* out) {
  const Functions& f = d.functions;
  if (index < 0 || index >= d.devices)
    return {
        Failure::Invalid,
        format("there is no device {}; {} has {} (0 to {})", index, d.vendor->name, d.devices, d.devices - 1),
        reason::kNoDevice};
  char text[256] = {};
  size_t memory = 0;
  int unified = 0;
  int error = f.device.call(&out->handle, index);
  const char* symbol = f.device.symbol;
  auto ask = [&](const auto& entry, auto... arguments) {
    if (error) return;
    symbol = entry.symbol;
    error = entry.call(arguments...);
  };
  ask(f.device_name, text, int(sizeof text) - 1, out->handle);
  out->name = text;
  memset(text, 0, sizeof text);
  ask(f.device_address, text, int(sizeof text) - 1, out->handle);
  out->address = text;
  ask(f.device_memory, &memory, out->handle);
  ask(f.device_attribute, &unified, d.vendor->integrated_attribute, out->handle);
  if (d.vendor->api == Api::Cuda) {
    ask(f.device_attribute, &out->major, 75, out->handle);
    ask(f.device_attribute, &out->minor, 76, out->handle);
  } else if (!error) {
    out->architecture = architecture_of(d, out->handle);
  }
  if (error) return failure_of(*d.vendor, symbol, error);
  if (out->name.empty()) out->name = format("{} GPU", d.vendor->maker);
  out->memory = memory, out->unified = unified != 0;
  out->driver = format("{} {}", d.vendor->name, d.vendor->version_text(d.version));
  return {};
}

}  // namespace gimbal::gpu::driver_api
