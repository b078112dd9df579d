// Model files from descriptions with no weights in them: scripts/oracle/plain_weights.py defines the numbers.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace gimbal::test {

// The bytes of a GGUF file: the keys of golden["metadata"], and the tensors of golden["tensors"], each [name,
// dimensions, middle, spread], in f32. There is no vocabulary: tokens are given as numbers.
std::string plain_model(const nlohmann::ordered_json& golden);
// The f32 values of one of golden["tensors"].
std::string plain_values(const nlohmann::ordered_json& tensor);

}  // namespace gimbal::test
