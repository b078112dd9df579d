// The small models of tests/data/peer/logits.json, which has their keys, their shapes and llama.cpp's logits
// (scripts/oracle/recorded_logits.py). The numbers of the tensors follow from a counter.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gimbal::test {

struct PeerTensor {
  std::string name;            // as in GGUF files
  std::vector<uint64_t> dims;  // the fastest-varying one first
  std::vector<float> values;
};

struct PeerModel {
  std::string name;  // of the architecture, and of its form behind a colon
  int context = 0;
  nlohmann::ordered_json metadata;
  std::vector<std::string> vocabulary;
  std::vector<PeerTensor> tensors;
  std::vector<int32_t> tokens;
  std::vector<int> positions;
  std::vector<float> logits;   // llama.cpp's at these positions
  bool gelu_by_table = false;  // it looks GELU up in a table of f16
};

std::vector<PeerModel> peer_models();
// Fails the calling test if there is no such model.
PeerModel peer_model(const std::string& name);

// Writes the model as a GGUF file. Returns the path, in a folder of this process.
std::string write_gguf(const PeerModel&);

// Opens what lies at `path`, a file or a folder, and compares its logits with the model's: in one batch, and
// with one token at a time, which must give the same bits.
void expect_logits(const PeerModel&, const std::string& path);

}  // namespace gimbal::test
