// The encoders of pictures: a row in visions.def each, and a short file with its pass over patches. Where an
// encoder's rows go in a prompt: layout.h.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/arch.h"

namespace gimbal {

// How a patch gets its position before the first block.
enum class PatchPositions : uint8_t {
  None,         // by rotation alone
  Table,        // a row of v.position_embd for each patch of a square picture
  Interpolated  // the square table, stretched over the picture with its corners on the corners
};

struct VisionArch {
  const char* projector;  // clip.projector_type
  void (*record)(Recorder&);
  PatchPositions positions = PatchPositions::Table;
  bool legacy_names = false;     // old files exchange ffn_up and ffn_down
  bool windows = false;          // rows of some blocks see squares of 112 pixels only
  bool grid = false;             // rows have lines and columns in the text (M-RoPE)
  bool together = false;         // in the text, all rows of a piece see each other
  bool sound = false;            // of sounds: its rows are frames of spectra
  bool features_by_row = false;  // mm.patch_merger's columns are ordered (channel, y, x)
  ModelArch model{projector, record, configure, true, nullptr, true};

  // Reads heads, and how many blocks are computed.
  static Status configure(const Metadata&, const TensorTable&, Config&);
};

// nullptr if this version does not know the projector.
const VisionArch* find_vision(std::string_view projector);
std::vector<std::string> vision_names();

// The key prefixes of a projector file's encoders, of pictures and of sounds.
inline constexpr const char *kVisionKeys = "clip.vision", *kSoundKeys = "clip.audio";

}  // namespace gimbal
