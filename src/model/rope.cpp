#include "model/rope.h"

#include <cmath>

#include "base/fixed_math.h"
#include "base/format.h"
#include "tensor/quant.h"

namespace gimbal {

// Times the most positions (2^24) it stays in the range in which fixed::cos and fixed::sin are exact.
static constexpr double kHighestFrequency = 64;

Result<RopeAngles> RopeAngles::create(const Gguf& file, const std::string& arch, int rotated, double base) {
  if (rotated < 2 || rotated % 2)
    return Error{Code::Malformed,
                 format("{}: {}.rope.dimension_count is {}, expected an even number of at least 2",
                        file.path(), arch, rotated),
                 ""};
  if (!(base > 0) || !std::isfinite(base))
    return Error{Code::Malformed,
                 format("{}: {}.rope.freq_base is {}, expected a positive number", file.path(), arch, base),
                 ""};
  double factor = 1;
  const std::string type_key = arch + ".rope.scaling.type";
  if (file.find(type_key) && !file.string(type_key))
    return Error{Code::Malformed, format("{}: metadata key '{}' must be a string", file.path(), type_key),
                 ""};
  // A factor without a type means linear scaling: files older than the type have only the factor.
  if (auto type = file.string(type_key).value_or("linear"); type != "none") {
    if (type != "linear" && !type.empty())
      return Error{
          Code::Unsupported,
          format("{}: {}.rope.scaling.type is '{}'; this version computes 'none' and 'linear' for {}",
                 file.path(), arch, type, arch),
          ""};
    for (const char* name : {".rope.scaling.factor", ".rope.scale_linear"}) {  // the second is the older name
      if (!file.find(arch + name)) continue;
      factor = file.number(arch + name).value_or(NAN);
      if (!(factor > 0) || !std::isfinite(factor))
        return Error{Code::Malformed,
                     format("{}: {}{} is {}, expected a positive number", file.path(), arch, name,
                            file.number(arch + name) ? format("{}", factor) : "a value of another kind"),
                     ""};
      break;
    }
  }
  std::vector<float> divisors(size_t(rotated) / 2, 1.f);
  if (const GgufTensor* t = file.tensor("rope_freqs.weight")) {
    if (t->type != DType::F32 || t->rank != 1 || t->dim[0] != rotated / 2)
      return Error{Code::Malformed, format("{}: rope_freqs.weight must be f32[{}]", file.path(), rotated / 2),
                   ""};
    decode_tensor(DType::F32, t->data.data(), t->dim[0], divisors.data());
  }
  RopeAngles r;
  for (int i = 0; i < rotated / 2; i++) {
    if (!(divisors[size_t(i)] > 0))
      return Error{Code::Malformed,
                   format("{}: rope_freqs.weight[{}] is {}, expected a positive number", file.path(), i,
                          divisors[size_t(i)]),
                   ""};
    r.frequencies_.push_back(fixed::pow(base, -2.0 * i / rotated) / double(divisors[size_t(i)]) / factor);
    if (!(r.frequencies_.back() <= kHighestFrequency))
      return Error{
          Code::Malformed,
          format("{}: the rotary settings (base {}, factor {}, divisor {}) turn pair {} by {} radians a "
                 "position; no model does that",
                 file.path(), base, factor, divisors[size_t(i)], i, r.frequencies_.back()),
          ""};
  }
  return r;
}

void RopeAngles::fill(int64_t position, float* out) const {
  for (double f : frequencies_) {
    const double angle = double(position) * f;
    *out++ = float(fixed::cos(angle));
    *out++ = float(fixed::sin(angle));
  }
}

}  // namespace gimbal
