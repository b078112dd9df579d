// A picture as the pieces that an encoder gets, in the order of the prompt. All resampling is integer work,
// bit for bit that of Pillow 11.3.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "media/picture.h"
#include "media/preprocess.h"
#include "media/sound.h"

namespace gimbal {

enum class PieceKind : uint8_t { Whole, Tile, Overview, Sound };
const char* name_of(PieceKind);  // "whole", "tile", "overview", "sound"

struct Piece {
  int image = 0;  // index of the picture in the prompt
  PieceKind what = PieceKind::Whole;
  int row = 0, column = 0;    // of tiles, from 0
  int width = 0, height = 0;  // pixels; of sounds: frames, mel bins
  std::vector<uint8_t> rgb;   // [height][width][3]; empty for sounds
  std::vector<float> mel;     // of sounds: [height][width]
};

// Errors: Usage if the picture cannot be used, Unsupported for sounds' projectors.
Result<std::vector<Piece>> pieces_of(const PreprocessSettings&, const Picture&, int image);

// Merged patches of a piece: each becomes a row of the text model.
struct PieceGrid {
  int columns = 0, rows = 0;
};
PieceGrid grid_of(const PreprocessSettings&, const Piece&);
// All rows of a piece, those between the grid's rows included (pixtral).
int rows_of(const PreprocessSettings&, const Piece&);

// The encoder's input, (value / 255 - mean) / std in f32: `out` has [height][width][3] values. Of sounds: a
// copy of `mel`.
void normalised(const PreprocessSettings&, const Piece&, float* out);

// Log-mel spectra of sounds, as Whisper's encoders get them.
constexpr int kMelFrames = 3000;  // of a piece: 30 s in steps of 10 ms

// One piece for every 30 s that begin; the last one is filled up with silence. The largest value of the sound
// bounds the smallest ones of all its pieces. Errors: Unsupported for projectors of pictures.
Result<std::vector<Piece>> pieces_of(const PreprocessSettings&, const Sound&, int image);

}  // namespace gimbal
