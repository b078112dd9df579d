// Model files from descriptions with no weights in them: scripts/oracle/plain_weights.py defines the numbers.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gimbal::test {

// The bytes of a GGUF file: the keys of golden["metadata"], and the tensors of golden["tensors"], each [name,
// dimensions, middle, spread], in f32. There is no vocabulary: tokens are given as numbers.
// `lists`: tensors of whole numbers of 64 bits, by name; an empty one is left out.
std::string plain_model(const nlohmann::ordered_json& golden,
                        const std::map<std::string, std::vector<int64_t>>& lists = {});
// The f32 values of one of golden["tensors"].
std::string plain_values(const nlohmann::ordered_json& tensor);

}  // namespace gimbal::test
