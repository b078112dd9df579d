// Log-mel spectra of sounds, as Whisper's encoders get them.
#pragma once
#include "media/pieces.h"
#include "media/sound.h"

namespace gimbal {

constexpr int kMelFrames = 3000;  // of a piece: 30 s in steps of 10 ms

// One piece for every 30 s that begin; the last one is filled up with silence. The largest value of the sound
// bounds the smallest ones of all its pieces. Errors: Unsupported for projectors of pictures.
Result<std::vector<Piece>> pieces_of(const PreprocessSettings&, const Sound&, int image);

}  // namespace gimbal
