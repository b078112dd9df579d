// Packed weights (runtime/packed_weights.h) of a user's models: where they are, when they are used, how
// they are made. Writes only on request.
#pragma once
#include <string>
#include <vector>

#include "engine/loader.h"

namespace gimbal {

// Where to look for them, best first: beside the model's file, in the user's cache folder. Empty for the
// model inside the program.
std::vector<std::string> packed_places(const ModelFile&);

// Writes them for a loaded model, reads them back and marks them intact. Returns the path. Errors: those of
// write_packed(); Usage for the model inside the program, or without a cache folder.
Result<std::string> pack_weights(const LoadedModel&, bool in_cache);

// Reads all of a file and compares it with its hashes, unless that was done before (`always`: even then).
// Errors: those of PackedFile::check_weights().
Status check_once(const PackedFile&, bool always);

}  // namespace gimbal
