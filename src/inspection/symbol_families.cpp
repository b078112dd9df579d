#include "inspection/symbol_families.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "tensor/dtype.h"

namespace gimbal {
namespace {

enum class Match : uint8_t {
  Begins,       // an identifier of the name begins so
  BeginsUpper,  // the same, and a capital letter follows: "cuInit", not "cursor"
  Contains,
  Equals,
};

struct Rule {
  SymbolFamily family;
  Match match;
  std::string_view text;
};

// The roadmap's rules ("bitnet_", "llama_", "cuda", "__global__", "quants", "i2_s") and those of the other
// libraries' public names.
constexpr Rule kRules[] = {
    {SymbolFamily::Bitnet, Match::Begins, "bitnet_"},
    {SymbolFamily::Bitnet, Match::Begins, "ggml_bitnet_"},
    {SymbolFamily::Llama, Match::Begins, "llama_"},
    {SymbolFamily::Ggml, Match::Begins, "ggml_"},
    {SymbolFamily::Ggml, Match::Begins, "gguf_"},
    {SymbolFamily::Plugin, Match::Equals, "gimbal_plugin_entry"},
    {SymbolFamily::Cuda, Match::Contains, "cuda"},
    {SymbolFamily::Cuda, Match::Contains, "__global__"},
    {SymbolFamily::Cuda, Match::Contains, "cublas"},
    {SymbolFamily::Cuda, Match::BeginsUpper, "cu"},
    {SymbolFamily::Cuda, Match::Begins, "nvrtc"},
    {SymbolFamily::Hip, Match::BeginsUpper, "hip"},
    {SymbolFamily::Hip, Match::Contains, "__hip"},
    {SymbolFamily::Hip, Match::Contains, "hipblas"},
    {SymbolFamily::Hip, Match::Contains, "rocblas"},
    {SymbolFamily::Hip, Match::Contains, "_hip_"},
    {SymbolFamily::Vulkan, Match::BeginsUpper, "vk"},
    {SymbolFamily::Vulkan, Match::Contains, "vulkan"},
    {SymbolFamily::Vulkan, Match::Contains, "_vk_"},
    {SymbolFamily::OpenCl, Match::Begins, "clCreate"},
    {SymbolFamily::OpenCl, Match::Begins, "clGet"},
    {SymbolFamily::OpenCl, Match::Begins, "clEnqueue"},
    {SymbolFamily::OpenCl, Match::Begins, "clBuild"},
    {SymbolFamily::OpenCl, Match::Begins, "clRelease"},
    {SymbolFamily::OpenCl, Match::Begins, "clSet"},
    {SymbolFamily::OpenCl, Match::Contains, "opencl"},
    {SymbolFamily::Metal, Match::BeginsUpper, "MTL"},
    {SymbolFamily::Metal, Match::Contains, "$_MTL"},
    {SymbolFamily::Metal, Match::Contains, "_metal_"},
    {SymbolFamily::WebGpu, Match::BeginsUpper, "wgpu"},
    {SymbolFamily::WebGpu, Match::Contains, "webgpu"},
    {SymbolFamily::Sycl, Match::Contains, "sycl"},
    {SymbolFamily::Quantization, Match::Contains, "quants"},
    {SymbolFamily::Quantization, Match::Contains, "i2_s"},
    {SymbolFamily::Quantization, Match::Begins, "quantize_"},
    {SymbolFamily::Quantization, Match::Begins, "dequantize_"},
    {SymbolFamily::Quantization, Match::Begins, "ggml_quantize_"},
    {SymbolFamily::Quantization, Match::Begins, "ggml_vec_dot_"},
    {SymbolFamily::Quantization, Match::Begins, "ggml_gemm_"},
    {SymbolFamily::Quantization, Match::Begins, "ggml_gemv_"},
};

struct LibraryRule {
  SymbolFamily family;
  std::string_view begins;  // of the file's name without "lib", in lower case
};
constexpr LibraryRule kLibraryRules[] = {
    {SymbolFamily::Cuda, "cuda.so"},     {SymbolFamily::Cuda, "cudart"},
    {SymbolFamily::Cuda, "cublas"},      {SymbolFamily::Cuda, "cudnn"},
    {SymbolFamily::Cuda, "nvcuda"},      {SymbolFamily::Cuda, "nvrtc"},
    {SymbolFamily::Cuda, "nccl"},        {SymbolFamily::Cuda, "ggml-cuda"},
    {SymbolFamily::Hip, "amdhip64"},     {SymbolFamily::Hip, "hipblas"},
    {SymbolFamily::Hip, "rocblas"},      {SymbolFamily::Hip, "rccl"},
    {SymbolFamily::Hip, "ggml-hip"},     {SymbolFamily::Vulkan, "vulkan"},
    {SymbolFamily::Vulkan, "moltenvk"},  {SymbolFamily::Vulkan, "ggml-vulkan"},
    {SymbolFamily::OpenCl, "opencl"},    {SymbolFamily::OpenCl, "ggml-opencl"},
    {SymbolFamily::Metal, "metal"},      {SymbolFamily::Metal, "metalkit"},
    {SymbolFamily::Metal, "ggml-metal"}, {SymbolFamily::WebGpu, "wgpu"},
    {SymbolFamily::WebGpu, "webgpu"},    {SymbolFamily::Sycl, "sycl"},
    {SymbolFamily::Sycl, "ze_loader"},   {SymbolFamily::Llama, "llama."},
    {SymbolFamily::Ggml, "ggml"},        {SymbolFamily::Bitnet, "bitnet"},
};

// The identifiers inside a mangled C++ name, or the name itself. Itanium's mangling writes each with its
// length in front; Microsoft's ends them with '@'.
template <class Take>
void for_each_identifier(std::string_view name, Take take) {
  take(name);
  if (name.starts_with("_Z")) {
    for (size_t at = 2; at < name.size();) {
      if (!std::isdigit(static_cast<unsigned char>(name[at]))) {
        at++;
        continue;
      }
      size_t length = 0;
      while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) && length < name.size())
        length = length * 10 + size_t(name[at++] - '0');
      if (length > name.size() - at) continue;
      take(name.substr(at, length));
      at += length;
    }
  } else if (name.starts_with('?')) {
    for (size_t at = 1; at < name.size();) {
      const size_t end = std::min(name.find('@', at), name.size());
      std::string_view part = name.substr(at, end - at);
      take(part);
      at = end + 1;
    }
  }
}

bool holds(const Rule& r, std::string_view name, std::string_view identifier) {
  switch (r.match) {
    case Match::Contains:
      return name.data() == identifier.data() && name.find(r.text) != std::string_view::npos;
    case Match::Equals: return identifier == r.text;
    case Match::Begins: return identifier.starts_with(r.text);
    case Match::BeginsUpper:
      return identifier.starts_with(r.text) && identifier.size() > r.text.size() &&
             std::isupper(static_cast<unsigned char>(identifier[r.text.size()]));
  }
  return false;
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Formats by length, the longest first: "iq2_xxs" is not "q2_xx".
const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{"tl1", "tl2"};
    for (DType t : kAllDTypes)
      if (const std::string name = info(t).name;
          name.find('_') != std::string::npos || name.starts_with("mxfp") || name.starts_with("nvfp"))
        all.push_back(name);
    std::sort(all.begin(), all.end(),
              [](auto& a, auto& b) { return a.size() > b.size() || (a.size() == b.size() && a < b); });
    return all;
  }();
  return names;
}

bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)); }

}  // namespace

const SymbolFamilyInfo& info(SymbolFamily f) {
  static constexpr SymbolFamilyInfo kInfos[] = {
#define GIMBAL_SYMBOL_FAMILY(id, key, title, gpu) {key, title, gpu},
#include "inspection/symbol_families.def"
#undef GIMBAL_SYMBOL_FAMILY
  };
  return kInfos[size_t(f)];
}

bool is_mangled(std::string_view name) { return name.starts_with("_Z") || name.starts_with('?'); }

SymbolFamilies families_of_symbol(std::string_view name) {
  SymbolFamilies found;
  for_each_identifier(name, [&](std::string_view identifier) {
    for (const Rule& r : kRules)
      if (!found[size_t(r.family)] && holds(r, name, identifier)) found.set(size_t(r.family));
  });
  return found;
}

SymbolFamilies families_of_library(std::string_view name) {
  std::string file = lower(name.substr(name.find_last_of("/\\") + 1));
  if (file.starts_with("lib")) file.erase(0, 3);
  SymbolFamilies found;
  for (const LibraryRule& r : kLibraryRules)
    if (file.starts_with(r.begins)) found.set(size_t(r.family));
  return found;
}

std::string format_of_symbol(std::string_view symbol) {
  const std::string name = lower(symbol);
  std::string best;
  size_t where = std::string::npos;
  for (const std::string& f : format_names())
    for (size_t at = name.find(f); at != std::string::npos && at < where; at = name.find(f, at + 1)) {
      const size_t end = at + f.size();
      // In mangled names a digit of the next length may stand behind it: "...q4_0v".
      const bool begins = at == 0 || !is_word_byte(name[at - 1]);
      const bool ends = end == name.size() || !is_word_byte(name[end]) || symbol.starts_with("_Z");
      if (begins && ends) best = f, where = at;
    }
  return best;
}

}  // namespace gimbal
