// Whether queries, keys and values are rotated (ops/defs/hadamard.cpp) for a KV cache, and why. The bits of
// all later logits depend on it: certificates and stored pages have it beside the cache's format.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/dtype.h"

namespace gimbal {

// Auto: in q5_0 and iq4_nl. Not in q8_0, which gains little, in q4_1, which some models lose by
// (docs/quality.md), and in q4_0, which is older than the rotation and keeps its bits. On: an error where
// nothing can be rotated.
enum class CacheRotation { Auto, On, Off };

struct RotationChoice {
  bool rotated = false;
  std::string why;  // for people: "4 and 5 bits lose less of rotated values"
};

// `cached`: the model keeps keys and values. Errors: Usage for On in a format that is not quantized, or
// without keys and values.
Result<RotationChoice> choose_rotation(CacheRotation, DType cache, bool cached);

// A format and whether its values are rotated, in one word for certificates and people: "q8_0",
// "q5_0, rotated".
std::string cache_name(std::string_view format, bool rotated);
// The reverse; Auto never results. False: there is no such name.
bool read_cache_name(std::string_view name, DType&, CacheRotation&);

}  // namespace gimbal
