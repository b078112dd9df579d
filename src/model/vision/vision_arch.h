// The encoders of pictures: a row in visions.def each, and a short file with its pass over patches. Where an
// encoder's rows go in a prompt: layout.h.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/arch.h"

namespace gimbal {

// How a patch gets its position before the first block: from a table that is a square of places, or two
// lists.
enum class PatchPositions : uint8_t {
  None,      // by rotation alone
  Table,     // the place of each patch of a square picture
  Corners,   // stretched over the picture, linearly, its corners on the corners
  Linear,    // likewise, pixel centres at halves, as PyTorch's interpolate()
  Smoothed,  // likewise, and with antialias=True
  Cubic,     // likewise, by cubes with a = -0.75; a file without a table has no positions
  Nearest,   // the place at or before the patch's
  Axes       // a list for columns, then one for lines; their sum
};

struct VisionArch {
  const char* projector;  // clip.projector_type
  void (*record)(Recorder&);
  PatchPositions positions = PatchPositions::Table;
  bool legacy_names = false;           // old files exchange ffn_up and ffn_down
  bool windows = false;                // rows of some blocks see squares of 112 pixels only
  bool grid = false;                   // rows have lines and columns in the text (M-RoPE)
  bool together = false;               // in the text, all rows of a piece see each other
  std::array<int, 2> not_together{};   // widths of text models whose rows do not
  bool sound = false;                  // of sounds: its rows are frames of spectra
  bool features_by_row = false;        // mm.patch_merger's columns are ordered (channel, y, x)
  bool transposed_projection = false;  // mm.input_projection has a row for each of its inputs
  bool own_bias = false;               // the bias of patches is not added with the positions
  bool class_last = false;             // the class row has the last position; patches' lines count from 1
  bool signed_pixels = false;          // from -1 to 1, whatever the file's mean
  bool squares = false;  // the patches of a row are squares of 2 x 2, which some layers see alone
  bool blocks = true;    // false: rows are made of patches alone
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
