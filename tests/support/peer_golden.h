// llama.cpp's answers to the models of tests/data/peer/architectures.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace gimbal::test {

// The description of a model and its logits, by the name of its file.
nlohmann::ordered_json peer_golden(const std::string& name);

// Opens a file or a folder that has the model's weights. Its logits behind the prompt must be llama.cpp's.
void expect_peer_logits(const nlohmann::ordered_json& golden, const std::string& path);

}  // namespace gimbal::test
