// Small models of many architectures beside the logits that llama.cpp gives for them.
#include <gtest/gtest.h>

#include "support/peer_models.h"

namespace gimbal::test {
namespace {

TEST(PeerLogits, AreThoseOfLlamaCpp) {
  const std::vector<PeerModel> models = peer_models();
  ASSERT_GE(models.size(), 33u);
  for (const PeerModel& m : models) {
    SCOPED_TRACE(m.name);
    expect_logits(m, write_gguf(m));
  }
}

}  // namespace
}  // namespace gimbal::test
