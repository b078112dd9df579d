// A projector file (mmproj), checked: the encoder of pictures beside a text model, in the one form that
// models of this program are recorded from, and the tables that the host adds to patches.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "files/model_source.h"
#include "media/preprocess.h"
#include "model/vision/vision_arch.h"

namespace gimbal {

constexpr int kMostPatches = 1 << 16;  // of a piece
constexpr int kSoundRows = 1500;       // of a piece of a sound: one for two frames of its spectrum

struct VisionFile {
  const VisionArch* arch = nullptr;
  PreprocessSettings settings;
  std::shared_ptr<const ModelSource> source;  // tensors without "v." or "a."
  int width = 0;                              // of the encoder
  int row_width = 0;                          // of a row for the text model, with all parts
  int most_patches = 0;   // of a piece, but for pictures that are very long or high; with the class row
  int queries = 0;        // rows in front of the patches that become the text model's; 0: patches do
  bool together = false;  // in the text, all rows of a piece see each other
  std::vector<float> class_row;   // [width]; empty: none
  std::vector<float> bias;        // [width]; empty: none
  std::vector<float> positions;   // [positions, width], one of them that of the class row; empty: none
  std::vector<float> line_break;  // [row_width]: a row behind each line but the last; empty: none

  // That become one row of the text model.
  int patches_per_row() const { return arch->sound ? settings.stack : settings.merge * settings.merge; }
  bool has_class_row() const { return !class_row.empty(); }
};

// Whether the metadata are those of a projector file.
bool is_projector_file(const Metadata&);

// Errors: Usage for a file that is no projector; Unsupported for a projector that this version does not
// compute; Malformed for anything in it that does not fit together; those of reading.
Result<VisionFile> open_vision(const ModelSource& mmproj);

}  // namespace gimbal
