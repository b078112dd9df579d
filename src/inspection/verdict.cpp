#include "inspection/verdict.h"

#include <algorithm>
#include <map>

namespace gimbal {
namespace {

constexpr size_t kKeptNames = 512 << 10;  // bytes of each list of a family; the others are counted

// The roadmap's names of kernels; other formats have their own.
std::string kernel_name(const std::string& format) {
  static const std::map<std::string, std::string> kNames = {
      {"i2_s", "I2S_QK256"}, {"iq2_s", "IQ2S_GGML"}, {"tl1", "TL1"}, {"tl2", "TL2"}};
  const auto known = kNames.find(format);
  if (known != kNames.end()) return known->second;
  std::string upper = format;
  for (char& c : upper) c = char(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return upper;
}

std::string device_name(SymbolFamily f) {
  const std::string title = info(f).title;
  return title.substr(0, title.find(' '));
}

SymbolFamily family_of_code(const std::string& kind) {
  if (kind == "NVIDIA fatbin" || kind == "CUDA binary" || kind == "PTX") return SymbolFamily::Cuda;
  if (kind.find("AMD code object") != std::string::npos) return SymbolFamily::Hip;
  if (kind.starts_with("Metal")) return SymbolFamily::Metal;
  if (kind.starts_with("OpenCL")) return SymbolFamily::OpenCl;
  if (kind.starts_with("WGSL")) return SymbolFamily::WebGpu;
  return SymbolFamily::Count;  // SPIR-V is for Vulkan and OpenCL
}

void add_once(std::vector<std::string>& to, const std::string& what) {
  if (std::find(to.begin(), to.end(), what) == to.end()) to.push_back(what);
}

// Names of C++ alone are no evidence: headers of frameworks name devices that the library cannot use.
// Neither are functions that report whether a device is supported: ggml_cpu_has_cublas is in every ggml.
bool is_query(std::string_view name) {
  for (const char* part : {"_has_", "_supports_", "_is_"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

bool can_use(const FamilyFinding& f) { return f.evidence || !f.code.empty() || !f.libraries.empty(); }

class Judge {
 public:
  explicit Judge(const Inspection& i) : inspection_(i) {}

  LibraryVerdict judge() {
    for (const BinaryImage& image : inspection_.images) {
      symbols(image.exported, true);
      symbols(image.undefined, false);
      for (const auto* list : {&image.needed, &image.opens})
        for (const std::string& library : *list) {
          const SymbolFamilies of = families_of_library(library);
          for (size_t f = 0; f < kSymbolFamilies; f++)
            if (of[f]) add_once(verdict_.families[f].libraries, library);
        }
      for (const EmbeddedGpuCode& code : image.gpu_code)
        if (const SymbolFamily f = family_of_code(code.kind); f != SymbolFamily::Count)
          add_once(at(f).code, code.kind);
        else if (code.kind == "SPIR-V") spirv_ = true;
    }
    for (FamilyFinding& f : verdict_.families) f.names.sort(), f.plain.sort(), f.exported.sort();
    devices();
    for (auto& [name, on] : kernels_) {
      std::sort(on.begin(), on.end());
      for (const std::string& device : on) verdict_.kernels.push_back({name, device});
    }
    return std::move(verdict_);
  }

 private:
  FamilyFinding& at(SymbolFamily f) { return verdict_.families[size_t(f)]; }

  void symbols(const NameList& names, bool defined) {
    for (size_t i = 0; i < names.kept(); i++) {
      const std::string_view name = names[i];
      const SymbolFamilies of = families_of_symbol(name);
      for (size_t f = 0; f < kSymbolFamilies; f++)
        if (of[f]) count(verdict_.families[f], name, defined);
      if (defined && (name == "ggml_backend_load" || name == "ggml_backend_load_all"))
        verdict_.loads_backends = true;
      if (!of[size_t(SymbolFamily::Quantization)] || !defined) continue;
      if (const std::string format = format_of_symbol(name); !format.empty()) kernel(kernel_name(format), of);
    }
  }

  static void add(NameList& to, std::string_view name) { to.bytes() < kKeptNames ? to.add(name) : to.skip(); }

  static void count(FamilyFinding& f, std::string_view name, bool defined) {
    add(f.names, name);
    if (is_mangled(name)) return;
    add(f.plain, name);
    f.evidence += !is_query(name);
    if (defined) add(f.exported, name);
  }

  void kernel(const std::string& name, const SymbolFamilies& of) {
    bool gpu = false;
    for (SymbolFamily f : {SymbolFamily::Cuda, SymbolFamily::Hip, SymbolFamily::Vulkan, SymbolFamily::OpenCl,
                           SymbolFamily::Metal, SymbolFamily::WebGpu, SymbolFamily::Sycl})
      if (of[size_t(f)]) add_once(kernels_[name], device_name(f)), gpu = true;
    if (!gpu) add_once(kernels_[name], "CPU");
  }

  void devices() {
    if (spirv_)
      at(at(SymbolFamily::OpenCl).found() && !at(SymbolFamily::Vulkan).found() ? SymbolFamily::OpenCl
                                                                               : SymbolFamily::Vulkan)
          .code.push_back("SPIR-V");
    // ggml's build for AMD GPUs keeps the names of CUDA.
    const FamilyFinding& cuda = at(SymbolFamily::Cuda);
    const bool hip = can_use(at(SymbolFamily::Hip)), only_named = cuda.code.empty() && cuda.libraries.empty();
    for (size_t f = 0; f < kSymbolFamilies; f++)
      if (info(SymbolFamily(f)).gpu && can_use(verdict_.families[f]) &&
          !(SymbolFamily(f) == SymbolFamily::Cuda && hip && only_named))
        verdict_.gpus.push_back(device_name(SymbolFamily(f)));
  }

  const Inspection& inspection_;
  LibraryVerdict verdict_;
  std::map<std::string, std::vector<std::string>> kernels_;
  bool spirv_ = false;
};

}  // namespace

LibraryVerdict judge(const Inspection& i) { return Judge(i).judge(); }

std::string summary(const LibraryVerdict& v) {
  std::string provides, gpus;
  for (SymbolFamily f : {SymbolFamily::Bitnet, SymbolFamily::Llama, SymbolFamily::Ggml, SymbolFamily::Plugin})
    if (v.of(f).exported.count())
      provides += (provides.empty() ? "" : ", ") +
                  std::string(f == SymbolFamily::Plugin ? "gimbal plugin" : info(f).key);
  for (const std::string& g : v.gpus) gpus += (gpus.empty() ? "" : ", ") + g;
  return (provides.empty() ? "no inference library" : provides) + "; " + (gpus.empty() ? "CPU only" : gpus);
}

}  // namespace gimbal
