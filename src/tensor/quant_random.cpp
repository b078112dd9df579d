// Random blocks: random bits with plausible values in the scale fields.
#include <cstring>

#include "tensor/quant.h"
#include "tensor/quant/values.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

using Next = const std::function<uint64_t()>;

void put_half(uint8_t* at, float v) {
  const uint16_t h = float_to_half(v);
  std::memcpy(at, &h, 2);
}

// `vary` is between 0.5 and 1.5.
template <class Meaning>
void set_scales(uint8_t* block, float vary, Next& next) {
  if constexpr (requires { Meaning::unit_at; })
    put_half(block + Meaning::unit_at, Meaning::usual_unit * vary);
  if constexpr (requires { Meaning::minimum_unit_at; })
    put_half(block + Meaning::minimum_unit_at, Meaning::usual_unit * vary);
  if constexpr (requires { Meaning::make_sane(block, vary, next); }) Meaning::make_sane(block, vary, next);
}

void set_scales(DType type, uint8_t* block, float vary, Next& next) {
  switch (type) {
#define GIMBAL_FORMAT(id, name, ...) \
  case DType::id:                    \
    return set_scales<quant::id>(block, vary, next);
#define GIMBAL_DECODED(id) GIMBAL_FORMAT(id, )
#include "tensor/formats.def"
#undef GIMBAL_DECODED
#undef GIMBAL_FORMAT
    default: return;
  }
}

}  // namespace

void random_blocks(DType type, int64_t n, void* blocks, const std::function<uint64_t()>& next) {
  auto* b = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n / info(type).block; i++, b += info(type).bytes) {
    for (int k = 0; k < info(type).bytes; k++) b[k] = uint8_t(next() >> 56);
    set_scales(type, b, 0.5f + float(next() >> 40) / float(1 << 24), next);
  }
}

}  // namespace gimbal
