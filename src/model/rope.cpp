#include "model/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/fixed_math.h"
#include "base/format.h"
#include "base/text.h"
#include "tensor/quant.h"

namespace gimbal {

// Times the most positions (2^24) it stays in the range in which fixed::cos and fixed::sin are exact.
static constexpr double kHighestFrequency = 64;

namespace {

// The file's settings under "<arch>.rope.scaling.".
struct Scaling {
  double factor = 1;  // frequencies are divided by it ...
  bool yarn = false;  // ... all of them, or by YaRN's rule
  bool longrope = false;
  double context = 0, fast = 0, slow = 1, magnitude = 1;
};

// A key of another kind is an error, never the default.
Status read_positive(const Metadata& metadata, const std::string& key, double& value) {
  if (!metadata.find(key)) return Done{};
  auto v = metadata.number(key);
  if (!v || !(*v > 0) || !std::isfinite(*v))
    return Error{Code::Malformed,
                 format("{}: {} is {}, expected a positive number", metadata.source(), key,
                        v ? format("{}", *v) : "a value of another kind"),
                 ""};
  value = *v;
  return Done{};
}

Result<Scaling> read_scaling(const Metadata& metadata, const TensorTable& tensors, const std::string& arch,
                             double beta_fast) {
  const std::string prefix = arch + ".rope.scaling.", type_key = prefix + "type";
  if (metadata.find(type_key) && !metadata.string(type_key))
    return Error{Code::Malformed,
                 format("{}: metadata key '{}' must be a string", metadata.source(), type_key), ""};
  Scaling s;
  s.fast = beta_fast;
  // Files of phi3 have longrope's factors without naming the type. A factor of all without a type means
  // linear scaling: files older than the type have only that.
  const bool factors = tensors.find("rope_factors_long.weight") || tensors.find("rope_factors_short.weight");
  const std::string_view type = metadata.string(type_key).value_or(factors ? "longrope" : "linear");
  if (factors && type != "longrope")
    return Error{Code::Malformed,
                 format("{}: {} is {}, but the file has the factors of 'longrope' (rope_factors_long.weight)",
                        metadata.source(), type_key, quoted(type)),
                 ""};
  if (type == "none") return s;
  s.yarn = type == "yarn", s.longrope = type == "longrope";
  if (!s.yarn && !s.longrope && type != "linear" && !type.empty())
    return Error{Code::Unsupported,
                 format("{}: {} is {}; this version computes 'none', 'linear', 'yarn' and 'longrope' for {}",
                        metadata.source(), type_key, quoted(type), arch),
                 ""};
  const std::string older = arch + ".rope.scale_linear";
  if (auto ok =
          read_positive(metadata, metadata.find(prefix + "factor") ? prefix + "factor" : older, s.factor);
      !ok)
    return ok.error();
  if (!s.yarn && !s.longrope) return s;
  if (s.longrope) s.factor = 1;  // it is in the factors of the frequencies
  double log_multiplier = 0;
  if (auto ok = read_positive(metadata, prefix + "yarn_log_multiplier", log_multiplier); !ok)
    return ok.error();
  for (const char* name : {"yarn_ext_factor", "yarn_attn_factor"})
    if (metadata.find(prefix + name) && metadata.number(prefix + name) != 1.0)
      return Error{
          Code::Unsupported,
          format("{}: metadata key '{}{}': this version computes 1 only", metadata.source(), prefix, name),
          ""};
  for (auto [key, value] : {std::pair{arch + ".context_length", &s.context},
                            {prefix + "original_context_length", &s.context},
                            {prefix + "yarn_beta_fast", &s.fast},
                            {prefix + "yarn_beta_slow", &s.slow},
                            {prefix + "attn_factor", &s.magnitude}})
    if (auto ok = read_positive(metadata, key, *value); !ok) return ok.error();
  const double growth = 0.1 * std::max(0.0, fixed::log(s.factor));
  s.magnitude *= (1 + growth) / (1 + log_multiplier * growth);
  return s;
}

// YaRN (Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023): pairs that
// turn more than `fast` times within the original context keep their frequency, those that turn less than
// `slow` times have it divided by the factor, and in between a ramp over the pairs' numbers mixes the two.
double share_divided(const Scaling& s, int pair, int rotated, double base) {
  if (!s.yarn) return 1;
  auto pair_of = [&](double turns) {
    return rotated * fixed::log(s.context / (turns * 2 * std::numbers::pi)) / (2 * fixed::log(base));
  };
  const double low = std::max(0.0, std::floor(pair_of(s.fast)));
  const double high = std::min(rotated - 1.0, std::ceil(pair_of(s.slow)));
  return std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
}

}  // namespace

// The values of a tensor by which the frequencies are divided; unchanged if the file has no such tensor.
static Status read_divisors(const ModelSource& file, const std::string& name, size_t stored,
                            std::vector<float>& divisors) {
  const StoredTensor* t = file.tensors().find(name);
  if (!t) return Done{};
  if (t->type != DType::F32 || t->rank != 1 || t->dim[0] != int64_t(stored))
    return Error{Code::Malformed, format("{}: {} must be f32[{}]", file.path(), name, stored), ""};
  return file.read(*t, 0, divisors.data(), divisors.size() * sizeof(float));
}

// By pair, the number of a place that turns it; empty for a file without sections.
static Result<std::vector<int32_t RopePosition::*>> read_sections(const Metadata& metadata,
                                                                  const std::string& arch, size_t pairs,
                                                                  RopeSections order) {
  const std::string key = arch + ".rope.dimension_sections";
  std::vector<int32_t RopePosition::*> axes;
  if (!metadata.find(key)) return axes;
  const MetadataArray* array = metadata.array(key);
  const auto sections = array && array->count <= 4 ? array->integers() : std::vector<int64_t>();
  constexpr int64_t kMost = 1 << 16;
  const auto fits = [](int64_t n) { return n >= 0 && n <= kMost; };
  if (sections.size() < 3 || !std::all_of(sections.begin(), sections.end(), fits))
    return Error{Code::Malformed,
                 format("{}: {} must be 3 or 4 numbers from 0 to {}", metadata.source(), key, kMost), ""};
  const auto [a, b, c] = std::array{sections[0], sections[1], sections[2]};
  const int64_t all = std::accumulate(sections.begin(), sections.end(), int64_t(0));
  for (size_t pair = 0; pair < pairs; pair++) {
    const int64_t i = all ? int64_t(pair) % all : 0;
    const bool line = order == RopeSections::Blocks ? i >= a && i < a + b : i % 3 == 1 && i < 3 * b;
    const bool column = order == RopeSections::Blocks ? i >= a + b && i < a + b + c : i % 3 == 2 && i < 3 * c;
    axes.push_back(line ? &RopePosition::line : column ? &RopePosition::column : &RopePosition::time);
  }
  return axes;
}

Result<RopeAngles> RopeAngles::create(const ModelSource& file, const std::string& arch,
                                      const RopeSettings& settings) {
  const int rotated = settings.rotated;
  const double base = settings.base;
  if (rotated < 2 || rotated % 2)
    return Error{Code::Malformed,
                 format("{}: {}.rope.dimension_count is {}, expected an even number of at least 2",
                        file.path(), arch, rotated),
                 ""};
  if (!(base > 0) || !std::isfinite(base))
    return Error{Code::Malformed,
                 format("{}: {}.rope.freq_base is {}, expected a positive number", file.path(), arch, base),
                 ""};
  auto scaling =
      settings.scaled ? read_scaling(file.metadata(), file.tensors(), arch, settings.beta_fast) : Scaling();
  if (!scaling) return scaling.error();
  std::vector<float> divisors(size_t(rotated) / 2, 1.f);
  const char* of_length =
      settings.context > scaling->context ? "rope_factors_long.weight" : "rope_factors_short.weight";
  if (settings.divided) {
    const size_t stored = std::max(divisors.size(), size_t(settings.divisors));
    if (auto ok = read_divisors(file, "rope_freqs.weight", stored, divisors); !ok) return ok.error();
    if (auto ok = scaling->longrope ? read_divisors(file, of_length, stored, divisors) : Status(Done{}); !ok)
      return ok.error();
  }
  auto axes = read_sections(file.metadata(), arch, divisors.size(), settings.sections);
  if (!axes) return axes.error();
  RopeAngles r;
  r.axes_ = std::move(*axes), r.ahead_ = settings.ahead;
  r.magnitude_ = settings.magnitude > 0 ? settings.magnitude : scaling->magnitude;
  for (int i = 0; i < rotated / 2; i++) {
    if (!(divisors[size_t(i)] > 0))
      return Error{Code::Malformed,
                   format("{}: rope_freqs.weight[{}] is {}, expected a positive number", file.path(), i,
                          divisors[size_t(i)]),
                   ""};
    const double plain = fixed::pow(base, -2.0 * i / rotated) / double(divisors[size_t(i)]);
    const double share = share_divided(*scaling, i, rotated, base);
    r.frequencies_.push_back(share == 1 ? plain / scaling->factor
                                        : plain / scaling->factor * share + plain * (1 - share));
    if (!(r.frequencies_.back() <= kHighestFrequency))
      return Error{
          Code::Malformed,
          format("{}: the rotary settings (base {}, factor {}, divisor {}) turn pair {} by {} radians a "
                 "position; no model does that",
                 file.path(), base, scaling->factor, divisors[size_t(i)], i, r.frequencies_.back()),
          ""};
  }
  return r;
}

void RopeAngles::fill(int64_t position, float* out) const {
  for (double f : frequencies_) fill_pair(double(position + ahead_) * f, out), out += 2;
}

void RopeAngles::fill(const RopePosition& place, float* out) const {
  for (size_t i = 0; i < frequencies_.size(); i++, out += 2)
    fill_pair(double(place.*(in_sections() ? axes_[i] : &RopePosition::time) + ahead_) * frequencies_[i],
              out);
}

void RopeAngles::fill_pair(double angle, float* out) const {
  out[0] = float(fixed::cos(angle) * magnitude_);
  out[1] = float(fixed::sin(angle) * magnitude_);
}

}  // namespace gimbal
