// libFuzzer over pictures and the metadata of projector files. The first byte chooses a projector, the next
// ones its sizes, the rest is the picture: whatever the bytes are, there is an error that says something, or
// pieces whose pixels are all there.
#include <span>

#include "media/picture.h"
#include "media/pieces.h"
#include "require.h"

namespace {

constexpr const char* kFuzzedProjectors[] = {"gemma3",         "mlp",    "internvl", "idefics3",
                                             "qwen2vl_merger", "pixtral"};

gimbal::Metadata fuzzed_clip(std::span<const uint8_t> bytes) {
  using namespace gimbal;
  static const float half[] = {0.5f, 0.5f, 0.5f};
  const MetadataArray three{MetadataType::F32, 3, std::as_bytes(std::span(half))};
  Metadata m("fuzzed");
  const auto number = [&](const char* key, uint8_t value) {
    if (value) m.put(key, {MetadataType::U32, uint64_t(value)});
  };
  m.put("clip.projector_type", {MetadataType::String, std::string_view(kFuzzedProjectors[bytes[0] % 6])});
  m.put("clip.vision.image_mean", {MetadataType::Array, three});
  m.put("clip.vision.image_std", {MetadataType::Array, three});
  number("clip.vision.image_size", bytes[1]);
  number("clip.vision.patch_size", bytes[2] % 32);
  number("clip.vision.projector.scale_factor", bytes[3] % 8);
  number("clip.vision.preproc_image_size", bytes[4]);
  number("clip.vision.preproc_max_tiles", bytes[5] % 16);
  return m;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gimbal;
  constexpr size_t kSizes = 6;
  constexpr uint64_t kFuzzedPixels = 1'000'000;  // memory and time of one input
  if (size < kSizes) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + kSizes, size - kSizes);
  const auto picture = decode_picture(bytes, kFuzzedPixels);
  if (!picture) {
    require(picture.error().message.size() > 10);
    return 0;
  }
  require(picture->width > 0 && picture->height > 0);
  require(picture->rgb.size() == size_t(picture->width) * size_t(picture->height) * 3);
  const auto settings = preprocess_settings(fuzzed_clip({data, kSizes}));
  if (!settings) {
    require(settings.error().message.size() > 10);
    return 0;
  }
  const auto pieces = pieces_of(*settings, *picture, 0);
  if (!pieces) {
    require(pieces.error().message.size() > 10);
    return 0;
  }
  for (const Piece& piece : *pieces) {
    require(piece.rgb.size() == size_t(piece.width) * size_t(piece.height) * 3);
    require(rows_of(*settings, piece) > 0);
  }
  return 0;
}
