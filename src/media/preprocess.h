// How a projector file wants its pictures and sounds: the metadata `clip.*`, checked.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"

namespace gimbal {

// The rule that makes pieces of a picture. docs/vision.md describes each.
enum class PieceRule : uint8_t {
  Square,     // one square picture, padded
  Pinpoints,  // tiles of the best of several sizes, and the picture as a whole
  Free,       // one picture of nearly its own size
  Refined,    // tiles of a picture scaled to a longest side (idefics3)
  Sound,
};

struct PreprocessSettings {
  std::string projector;  // "gemma3", "mlp", "qwen2vl_merger", ...
  PieceRule rule = PieceRule::Square;
  int image_size = 0;  // side of a square input in pixels; 0 where only `patch` counts
  int patch = 0;       // side of a patch in pixels
  int merge = 1;       // merge x merge patches become one row
  float mean[3] = {}, std[3] = {};
  std::vector<std::pair<int, int>> pinpoints;  // (width, height) in pixels, multiples of image_size
  int longest_side = 0;                        // Refined: the longer side becomes this; 0: it is kept
  int min_rows = 0, max_rows = 0;              // Free: limits, in rows of the text model
  int mel_bins = 0, stack = 1;                 // Sound: bins of a frame; encoded frames that become one row
};

// Fails with Malformed if a value is missing or out of range, with Unsupported for unknown projectors.
Result<PreprocessSettings> preprocess_settings(const Metadata&);

}  // namespace gimbal
