#include "model/vision/vision_arch.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {

namespace vision {
#define GIMBAL_VISION(name) extern const VisionArch name;
#include "model/vision/visions.def"
#undef GIMBAL_VISION
}  // namespace vision

static const VisionArch* const kVisions[] = {
#define GIMBAL_VISION(name) &vision::name,
#include "model/vision/visions.def"
#undef GIMBAL_VISION
};

const VisionArch* find_vision(std::string_view projector) {
  for (const VisionArch* v : kVisions)
    if (projector == v->projector) return v;
  return nullptr;
}

std::vector<std::string> vision_names() {
  std::vector<std::string> all;
  for (const VisionArch* v : kVisions) all.push_back(v->projector);
  return all;
}

// llava's feature layers name blocks' inputs; the blocks behind the last of them are not computed.
Status VisionArch::configure(const Metadata& metadata, const TensorTable& tensors, Config& c) {
  if (auto ok = configure_attention(metadata, tensors, c); !ok) return ok;
  const std::string key = c.arch + ".feature_layer";
  const MetadataArray* features = metadata.array(key);
  if (!features) return Done{};
  int64_t last = -1;
  for (int64_t layer : features->integers()) {
    if (layer < 0 || layer > c.layers)
      return Error{Code::Malformed,
                   format("{}: {} names layer {}; the file has layers 0 to {}", metadata.source(), key, layer,
                          c.layers),
                   ""};
    last = std::max(last, layer);
  }
  if (last < 0 || features->count > 64)
    return Error{Code::Malformed, format("{}: {} must be 1 to 64 numbers", metadata.source(), key), ""};
  c.left_out = c.layers - int(last);
  c.layers = int(last);
  return Done{};
}

}  // namespace gimbal
