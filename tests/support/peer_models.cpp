#include "support/peer_models.h"

#include <gtest/gtest.h>

#include <algorithm>
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

PeerTensor tensor_of(const Json& described, uint64_t index) {
  PeerTensor t{described["name"], described["dims"], {}};
  uint64_t count = 1;
  for (uint64_t d : t.dims) count *= d;
  const double centre = described["centre"], scale = std::ldexp(1.0, described["exponent"].get<int>());
  for (uint64_t i = 0; i < count; i++) {
    const double u = double(mixed(index << 32 | i) >> 40) / (1 << 23) - 1;
    t.values.push_back(float(centre + u * scale));
  }
  return t;
}

void write_entry(GgufWriter& file, const std::string& key, const Json& value) {
  if (value.is_string()) file.string(key, value.get<std::string>());
  else if (value.is_boolean()) file.boolean(key, value.get<bool>());
  else if (value.is_number_float()) file.f32(key, value.get<float>());
  else if (value.is_number()) file.u32(key, value.get<uint32_t>());
  else if (value.at(0).is_number_float()) file.array(key, kF32, value.get<std::vector<float>>());
  else file.array(key, kI32, value.get<std::vector<int32_t>>());
}

}  // namespace

std::vector<PeerModel> peer_models() {
  const Json recorded = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/logits.json");
  std::vector<PeerModel> all;
  for (const Json& k : recorded["cases"]) {
    PeerModel m{k["name"],
                recorded["n_ctx"],
                k["metadata"],
                recorded["vocabulary"],
                {},
                k["tokens"],
                k["positions"],
                base64_floats(k["logits_llamacpp"]),
                k["gelu_by_table"]};
    for (const Json& t : k["tensors"]) m.tensors.push_back(tensor_of(t, m.tensors.size()));
    all.push_back(std::move(m));
  }
  return all;
}

PeerModel peer_model(const std::string& name) {
  for (PeerModel& m : peer_models())
    if (m.name == name) return std::move(m);
  ADD_FAILURE() << name << " is not in tests/data/peer/logits.json";
  std::abort();
}

std::string write_gguf(const PeerModel& m) {
  GgufWriter file;
  for (const auto& [key, value] : m.metadata.items()) write_entry(file, key, value);
  std::vector<int32_t> types(m.vocabulary.size(), 1);
  types[0] = 2, types[1] = types[2] = 3;
  file.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", m.vocabulary);
  file.array("tokenizer.ggml.scores", kF32, std::vector<float>(m.vocabulary.size()));
  file.array("tokenizer.ggml.token_type", kI32, types);
  for (const PeerTensor& t : m.tensors) file.floats(t.name, t.dims, t.values);
  std::string name = m.name;
  std::replace(name.begin(), name.end(), ':', '-');
  const std::string path = temporary_path(name + ".gguf");
  std::ofstream(path, std::ios::binary) << file.build();
  return path;
}

void expect_logits(const PeerModel& m, const std::string& path) {
  EngineOptions o;
  o.run.cache_type = DType::F32, o.run.context = m.context;
  auto engine = open_engine(path, o);
  ASSERT_TRUE(engine) << engine.error().message;
  const std::vector<float> got = engine->logits(m.tokens, m.positions);
  ASSERT_EQ(got.size(), m.logits.size());
  EXPECT_EQ(got, engine->logits(m.tokens, m.positions, 1)) << "one token at a time";
  double square = 0, most = 0;
  for (size_t i = 0; i < got.size(); i++) {
    square += double(m.logits[i]) * m.logits[i];
    most = std::isfinite(got[i]) ? std::max(most, std::fabs(double(got[i]) - m.logits[i])) : INFINITY;
  }
  const double size = std::sqrt(square / double(got.size()));
  std::printf("%-20s size %.1f, largest difference %.1e\n", m.name.c_str(), size, most);
  EXPECT_GT(size, 0.1);
  EXPECT_LE(most, (m.gelu_by_table ? 5e-3 : 5e-5) * size);
}

}  // namespace gimbal::test
