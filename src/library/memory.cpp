#include "library/internal.h"

namespace gimbal::v1 {

Result<ModelDimensions> dimensions_of(const ModelShape& s) {
  auto wrong = [](const char* field, const std::string& value, const std::string& limit) {
    return Error{Code::Usage, format("'{}' {} must be {}", field, value, limit),
                 "",          reason::kOutOfRange,
                 field,       value,
                 limit,       {}};
  };
  for (auto [field, n] : {std::pair("width", s.width),
                          {"ff_width", s.ff_width},
                          {"layers", s.layers},
                          {"vocabulary", s.vocabulary},
                          {"heads", s.heads},
                          {"kv_heads", s.kv_heads},
                          {"head_width", s.head_width},
                          {"context", s.context},
                          {"batch", s.batch},
                          {"sequences", s.sequences}})
    if (n < 0) return wrong(field, format("{}", n), "0 or more");
  ModelDimensions d;
  d.layers = s.layers, d.embedding = s.width, d.ffn = s.ff_width, d.vocabulary = s.vocabulary;
  d.heads = s.heads, d.kv_heads = s.kv_heads ? s.kv_heads : s.heads;
  d.head_dim = s.head_width ? s.head_width : s.heads ? s.width / s.heads : 0;
  d.tied_output = s.tied_output;
  d.context = s.context, d.batch = s.batch, d.sequences = s.sequences;
  const auto weights = dtype_named(s.weights), cache = dtype_named(s.cache_type);
  if (!weights) return wrong("weights", s.weights, "the name of a format, such as q4_0");
  if (!cache || !has(kCacheTypes, *cache))
    return wrong("cache_type", s.cache_type, "one of " + names_of(kCacheTypes));
  d.weights = *weights, d.cache = *cache;
  return d;
}

Result<MemoryEstimate> estimate_memory(const ModelShape& s) {
  const auto d = dimensions_of(s);
  if (!d) return d.error();
  const auto e = estimate_inference_memory(*d);
  return MemoryEstimate{e.weights, e.cache, e.activations, e.step, e.output};
}

}  // namespace gimbal::v1
