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

// Writes them for a model and its plan, reads them back and marks them intact. The model need not fit into
// memory. Returns the path. Errors: those of write_packed(); Usage for the model inside the program, or
// without a cache folder.
Result<std::string> pack_weights(const ModelFile&, const ModelPlan&, bool in_cache,
                                 const WeightProgress& progress = {});

// Reads all of a file and compares it with its hashes, unless that was done before (`always`: even then).
// Errors: those of PackedFile::check_weights().
Status check_once(const PackedFile&, bool always);

}  // namespace gimbal
