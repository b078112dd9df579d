// Requests that harmed other engines' servers (scripts/check/hostile/attacks.py): each gets one of the
// answers that are right, no worker is lost, and the server answers as before.
#include "support/hostile_files.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

TEST(ServeAttacks, OnOtherServersDoNothing) {
  const Serving s({}, {}, temporary_path("log"));
  const Json text = {{"prompt", "Once"}, {"max_tokens", 3}, {"temperature", 0}};
  const Json before = s.ask("/v1/completions", text)["choices"];
  size_t sent = 0;
  for (const HostileFile& attack : make_hostile_files({"--attacks"})) {
    if (attack.kind() != "http") continue;
    const std::string what = attack.rule() + ": " + attack.about["text"].get<std::string>();
    const HttpAnswer a = s.ask(attack.data());
    const auto right = attack.about["status"].get<std::vector<int>>();
    EXPECT_TRUE(std::find(right.begin(), right.end(), a.status) != right.end())
        << what << ": " << a.status << " " << a.body;
    for (const char* wrong : {"root:", "model_not_found"})
      EXPECT_EQ(a.body.find(wrong), std::string::npos) << what << ": " << a.body;
    EXPECT_EQ(s.ask("/v1/completions", text)["choices"], before) << what;
    sent++;
  }
  EXPECT_GT(sent, 15u);
  const std::string metrics = s.ask(get("/metrics")).body;
  EXPECT_NE(metrics.find("\ngimbal_worker_restarts_total"), std::string::npos) << metrics;
  for (size_t at = 0; (at = metrics.find("\ngimbal_worker_restarts_total", at)) != std::string::npos;) {
    const std::string line = metrics.substr(at + 1, metrics.find('\n', at + 1) - at - 1);
    EXPECT_EQ(line.substr(line.rfind(' ') + 1), "0") << line;
    at += line.size();
  }
}

}  // namespace
}  // namespace gimbal::test
