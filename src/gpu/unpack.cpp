#include "gpu/unpack.h"

#include <zlib.h>

#include <cstring>

#include "base/format.h"

namespace gimbal::gpu {
namespace {

constexpr std::string_view kMagic = "gimbal.z";
constexpr size_t kHeader = kMagic.size() + 4;
constexpr size_t kMostBytes = size_t(64) << 20;  // of a module; a damaged size must not take all memory

}  // namespace

Failure Unpacker::unpack(std::span<const uint8_t>& bytes) {
  if (bytes.empty()) return {};
  auto [it, is_new] = modules_.try_emplace(bytes.data());
  std::vector<uint8_t>& module = it->second;
  if (is_new) {
    size_t size = 0;
    if (bytes.size() > kHeader && memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0)
      for (size_t i = kHeader; i-- > kMagic.size();) size = size << 8 | bytes[i];
    module.resize(size <= kMostBytes ? size : 0);
    uLongf found = module.size();
    if (module.empty() ||
        uncompress(module.data(), &found, bytes.data() + kHeader, bytes.size() - kHeader) != Z_OK ||
        found != size) {
      modules_.erase(it);
      return {
          Failure::Invalid,
          format("{} packed bytes are not a module: this file is damaged\ninstall gimbal or its plugin again",
                 bytes.size())};
    }
  }
  bytes = module;
  return {};
}

Failure Unpacker::unpack(const KernelCode& code, KernelCode* out) {
  *out = code;
  if (!code.packed) return {};
  out->packed = false;
  for (auto* bytes : {&out->code, &out->subgroup_code})
    if (Failure f = unpack(*bytes)) return f.text = format("kernel {}: {}", code.name, f.text), f;
  return {};
}

}  // namespace gimbal::gpu
