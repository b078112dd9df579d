// libFuzzer over projector files: whatever the bytes are, there is an error that says something, or an
// encoder whose tables fit its patches.
#include <vector>

#include "files/gguf.h"
#include "model/vision/patches.h"
#include "require.h"

namespace {

using namespace gimbal;

// A piece of the size that the file names, if that is small.
Piece fuzzed_piece(const PreprocessSettings& s) {
  Piece p;
  if (s.rule == PieceRule::Sound) {
    p.what = PieceKind::Sound, p.width = 2 * kSoundRows, p.height = s.mel_bins;
    p.mel.resize(size_t(p.width) * size_t(p.height));
  } else if (s.image_size <= 256) {
    p.width = p.height = s.image_size;
    p.rgb.resize(size_t(p.width) * size_t(p.height) * 3);
  }
  return p;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  const auto gguf = parse_gguf(bytes, "fuzzed");
  if (!gguf) return 0;
  const auto vision = open_vision(*gguf);
  if (!vision) {
    require(vision.error().message.size() > 10);
    return 0;
  }
  require(vision->arch && vision->width > 0 && vision->row_width > 0);
  require(vision->most_patches > 0 && vision->most_patches <= kMostPatches);
  const auto config = configure(vision->source->metadata(), vision->source->tensors(), &vision->arch->model);
  require(config || config.error().message.size() > 10);
  const auto rows = patch_rows(*vision, fuzzed_piece(vision->settings));
  if (!rows) {
    require(rows.error().message.size() > 10);
    return 0;
  }
  require(int(rows->rows.size()) == rows->grid.patches);
  require(rows->added.size() == rows->rows.size() * size_t(vision->width));
  return 0;
}
