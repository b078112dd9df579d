#include "runtime/cache_rotation.h"

#include "base/format.h"
#include "tensor/format.h"

namespace gimbal {
namespace {

constexpr std::string_view kRotated = ", rotated";

Error nothing_to_rotate(const std::string& why, const std::string& remedy) {
  return {Code::Usage, "'cache_rotation' is on, and " + why, remedy, reason::kOutOfRange, "cache_rotation",
          "on"};
}

}  // namespace

Result<RotationChoice> choose_rotation(CacheRotation wish, DType cache, bool cached) {
  const DTypeInfo& t = info(cache);
  const bool on = wish == CacheRotation::On;
  if (!cached) {
    const char* why = "this model keeps no keys and values";
    if (on) return nothing_to_rotate(why, "leave it out");
    return RotationChoice{false, why};
  }
  if (t.block == 1) {
    const std::string why = format("a KV cache in {} is not quantized", t.name);
    if (on) return nothing_to_rotate(why, "leave it out, or choose a quantized 'cache_type'");
    return RotationChoice{false, why};
  }
  if (wish != CacheRotation::Auto)
    return RotationChoice{on, format("'cache_rotation' is {}", on ? "on" : "off")};
  if (t.bytes >= t.block) return RotationChoice{false, "8 bits lose little without it"};
  if (cache == DType::Q4_0) return RotationChoice{false, "q4_0 keeps the bits that it had before rotations"};
  if (format_of(cache).minimums)
    return RotationChoice{
        false, format("{} has a minimum for each block, and some models lose by a rotation", t.name)};
  return RotationChoice{true, "4 and 5 bits lose less of rotated values"};
}

std::string cache_name(std::string_view format, bool rotated) {
  std::string name(format);
  if (rotated) name += kRotated;
  return name;
}

bool read_cache_name(std::string_view name, DType& type, CacheRotation& rotation) {
  const bool rotated = name.ends_with(kRotated);
  if (rotated) name.remove_suffix(kRotated.size());
  const auto found = dtype_named(name);
  if (!found || (rotated && info(*found).block == 1)) return false;
  type = *found, rotation = rotated ? CacheRotation::On : CacheRotation::Off;
  return true;
}

}  // namespace gimbal
