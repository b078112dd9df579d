// How a projector file wants its pictures and sounds: the metadata `clip.*`, checked.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"
#include "media/picture.h"

namespace gimbal {

// The rule that makes pieces of a picture. docs/vision.md describes each.
enum class PieceRule : uint8_t {
  Square,     // one square picture, padded
  Pinpoints,  // tiles of the best of several sizes, and the picture as a whole
  Free,       // one picture of nearly its own size
  Longest,    // one picture, whose longer side has a size
  Refined,    // tiles of a picture scaled to a longest side (idefics3)
  Split,      // tiles of 512 pixels of a large picture (lfm2)
  Slices,     // the picture as a whole, and up to nine slices of a large one (MiniCPM-V)
  Sound,
};
inline constexpr int kSplitSide = 512;  // of a tile of PieceRule::Split

struct PreprocessSettings {
  std::string projector;  // "gemma3", "mlp", "qwen2vl_merger", ...
  PieceRule rule = PieceRule::Square;
  int image_size = 0;  // side of a square input in pixels; 0 where only `patch` counts
  int patch = 0;       // side of a patch in pixels
  int merge = 1;       // merge x merge patches become one row
  float mean[3] = {}, std[3] = {};
  std::vector<std::pair<int, int>> pinpoints;  // (width, height) in pixels, multiples of image_size
  int longest_side = 0;                    // Refined, Longest: the longer side becomes this; 0: it is kept
  int64_t min_pixels = 0, max_pixels = 0;  // Free, Split: limits
  ResampleFilter filter = ResampleFilter::Bicubic;
  std::array<uint8_t, 3> border{};  // the colour around a padded picture
  int queries = 0;                  // Slices: rows of the text model that each piece becomes; 0: by its size
  bool slices_together = false;     // Slices: marks stand around all slices, not around each (MiniCPM-V 2.5)
  int mel_bins = 0, stack = 1;      // Sound: bins of a frame; encoded frames that become one row
};

// The most patches of a piece, but for pictures that are very long or high.
int64_t most_patches_of(const PreprocessSettings&);

// Fails with Malformed if a value is missing or out of range, with Unsupported for unknown projectors.
Result<PreprocessSettings> preprocess_settings(const Metadata&);

}  // namespace gimbal
