// Small models of many architectures beside the logits that llama.cpp gives for them. The file has keys and
// shapes only (scripts/oracle/recorded_logits.py); the numbers of the tensors follow from a counter here,
// too.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "support/engine.h"
#include "support/gguf_writer.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;

// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
// 2014).
uint64_t mixed(uint64_t n) {
  n += 0x9e3779b97f4a7c15;
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
  n = (n ^ n >> 27) * 0x94d049bb133111eb;
  return n ^ n >> 31;
}

std::vector<float> numbers(const Json& tensor, uint64_t index, uint64_t count) {
  const double centre = tensor["centre"], scale = std::ldexp(1.0, tensor["exponent"].get<int>());
  std::vector<float> all;
  for (uint64_t i = 0; i < count; i++) {
    const double u = double(mixed(index << 32 | i) >> 40) / (1 << 23) - 1;
    all.push_back(float(centre + u * scale));
  }
  return all;
}

void write_entry(GgufWriter& file, const std::string& key, const Json& value) {
  if (value.is_string()) file.string(key, value.get<std::string>());
  else if (value.is_boolean()) file.boolean(key, value.get<bool>());
  else if (value.is_number_float()) file.f32(key, value.get<float>());
  else if (value.is_number()) file.u32(key, value.get<uint32_t>());
  else if (value.at(0).is_number_float()) file.array(key, kF32, value.get<std::vector<float>>());
  else file.array(key, kI32, value.get<std::vector<int32_t>>());
}

std::string path_of_model(const Json& recorded, const Json& model) {
  GgufWriter file;
  for (const auto& [key, value] : model["metadata"].items()) write_entry(file, key, value);
  const std::vector<std::string> vocabulary = recorded["vocabulary"];
  std::vector<int32_t> types(vocabulary.size(), 1);
  types[0] = 2, types[1] = types[2] = 3;
  file.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", vocabulary);
  file.array("tokenizer.ggml.scores", kF32, std::vector<float>(vocabulary.size()));
  file.array("tokenizer.ggml.token_type", kI32, types);
  uint64_t index = 0;
  for (const Json& tensor : model["tensors"]) {
    const std::vector<uint64_t> dims = tensor["dims"];
    uint64_t count = 1;
    for (uint64_t d : dims) count *= d;
    file.floats(tensor["name"].get<std::string>(), dims, numbers(tensor, index++, count));
  }
  std::string name = model["name"];
  std::replace(name.begin(), name.end(), ':', '-');
  const std::string path = temporary_path(name + ".gguf");
  std::ofstream(path, std::ios::binary) << file.build();
  return path;
}

TEST(PeerLogits, AreThoseOfLlamaCpp) {
  const Json recorded = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/logits.json");
  ASSERT_GE(recorded["cases"].size(), 20u);
  for (const Json& model : recorded["cases"]) {
    SCOPED_TRACE(model["name"].get<std::string>());
    EngineOptions o;
    o.run.cache_type = DType::F32, o.run.context = recorded["n_ctx"];
    auto engine = open_engine(path_of_model(recorded, model), o);
    if (!engine) {
      ADD_FAILURE() << engine.error().message;
      continue;
    }
    const std::vector<int32_t> tokens = model["tokens"];
    const std::vector<int> positions = model["positions"];
    const std::vector<float> want = base64_floats(model["logits_llamacpp"]),
                             got = engine->logits(tokens, positions);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(got, engine->logits(tokens, positions, 1)) << "one token at a time";
    double square = 0, most = 0;
    for (size_t i = 0; i < got.size(); i++) {
      square += double(want[i]) * want[i];
      most = std::isfinite(got[i]) ? std::max(most, std::fabs(double(got[i]) - want[i])) : INFINITY;
    }
    const double size = std::sqrt(square / double(got.size()));
    std::printf("%-18s size %.1f, largest difference %.1e\n", model["name"].get<std::string>().c_str(), size,
                most);
    EXPECT_GT(size, 0.1);
    // llama.cpp looks GELU up in a table of f16.
    EXPECT_LE(most, (model["gelu_by_table"].get<bool>() ? 5e-3 : 5e-5) * size);
  }
}

}  // namespace
}  // namespace gimbal::test
