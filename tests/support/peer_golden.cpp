#include "support/peer_golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {

nlohmann::ordered_json peer_golden(const std::string& name) {
  return read_json(std::string(GIMBAL_SOURCE_DIR "/tests/data/peer/architectures/") + name + ".json");
}

void expect_peer_logits(const nlohmann::ordered_json& golden, const std::string& path) {
  EngineOptions o;
  o.run.context = 256, o.run.batch = 64, o.run.logit_rows = 64, o.run.cache_type = DType::F32;
  auto engine = open_engine(path, o);
  ASSERT_TRUE(engine) << engine.error().message;
  const std::vector<int32_t> tokens = golden["tokens"];
  const std::vector<float> want = base64_floats(golden["logits"]),
                           got = engine->logits(tokens, {int(tokens.size()) - 1});
  ASSERT_EQ(got.size(), want.size());
  double largest = 0;
  for (size_t i = 0; i < want.size(); i++) largest = std::max(largest, std::fabs(double(got[i]) - want[i]));
  std::printf("largest difference %.1e\n", largest);
  // llama.cpp looks GELU up in a table of f16.
  EXPECT_LE(largest, golden.contains("gelu_by_table") ? 3e-2 : 1e-3);
}

}  // namespace gimbal::test
