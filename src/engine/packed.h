// Packed weights (runtime/packed_weights.h) of a user's models: where they are, when they are used, how they
// are made. Nothing is written that was not asked for.
#pragma once
#include <string>
#include <vector>

#include "engine/loader.h"

namespace gimbal {

// Where they are looked for, best first: beside the model's file, in the user's cache folder. None of the
// model inside the program.
std::vector<std::string> packed_places(const ModelFile&);

// Writes them for a loaded model, reads them back and keeps that they are whole. Gives the file. Errors:
// those of write_packed(); Usage for the model inside the program, or where there is no cache folder.
Result<std::string> pack_weights(const LoadedModel&, bool in_cache);

// Reads all of a file and compares it with its hashes, unless that was done (`always`: also then). Errors:
// those of PackedFile::check_weights().
Status check_once(const PackedFile&, bool always);

}  // namespace gimbal
