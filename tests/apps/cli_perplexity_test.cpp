// gimbal perplexity against its definition: losses, divergences and errors computed here, in double and with
// the standard library's functions, from the logits that `gimbal logits` writes (compared with references in
// cli_files_test).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/cli.h"

namespace gimbal::test {
namespace {

constexpr size_t kVocabulary = 512;

struct Case {
  std::string file;         // the text
  std::vector<int> tokens;  // of it
};
Case text() {
  Case c{temporary_path("perplexity.txt"), {}};
  EXPECT_TRUE(
      write_file(c.file,
                 "Once upon a time there was a little dog. He ran to the big tree and saw a red bird. "
                 "\"Hello, bird!\" said the dog. The bird was happy, and they played all day. <s> end"));
  const Json ids = json_of(gimbal({"tokenize", "--file", c.file, "--no-special", "--json"}));
  for (const Json& id : ids["tokens"]) c.tokens.push_back(id.get<int>());
  return c;
}

// Log probabilities of every position of a window, in double.
std::vector<std::vector<double>> log_probabilities(const std::string& model, const std::vector<int>& window) {
  std::string ids;
  for (int id : window) ids += format("{}{}", ids.empty() ? "" : ",", id);
  const std::string path = temporary_path("perplexity.f32");
  const Ran r = gimbal({"logits", model, "--tokens", ids, "--positions", "all", "-o", path});
  EXPECT_EQ(r.code, 0) << r.err;
  const std::string bytes = *read_file(path);
  std::vector<float> logits(bytes.size() / sizeof(float));
  std::memcpy(logits.data(), bytes.data(), bytes.size());
  EXPECT_EQ(logits.size(), kVocabulary * window.size());
  std::vector<std::vector<double>> rows(window.size(), std::vector<double>(kVocabulary));
  for (size_t i = 0; i < rows.size(); i++) {
    double sum = 0;
    for (size_t k = 0; k < kVocabulary; k++) sum += std::exp(double(logits[i * kVocabulary + k]));
    for (size_t k = 0; k < kVocabulary; k++) rows[i][k] = logits[i * kVocabulary + k] - std::log(sum);
  }
  return rows;
}

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / double(v.size());
}
double standard_error(const std::vector<double>& v) {
  double squares = 0;
  for (double x : v) squares += (x - mean(v)) * (x - mean(v));
  return std::sqrt(squares / double(v.size() - 1) / double(v.size()));
}

TEST(Perplexity, IsThatOfTheLogitsAndItsErrorToo) {
  const Case c = text();
  constexpr size_t kWindow = 24;
  const size_t windows = c.tokens.size() / kWindow;
  ASSERT_GE(windows, 2u);
  std::vector<double> losses, divergences, same;
  for (size_t w = 0; w < windows; w++) {
    std::vector<int> window(c.tokens.begin() + long(w * kWindow), c.tokens.begin() + long((w + 1) * kWindow));
    window[0] = 1;  // BOS
    const auto p = log_probabilities(story_file("f32"), window),
               q = log_probabilities(story_file("q4_0"), window);
    for (size_t i = kWindow / 2; i + 1 < kWindow; i++) {
      losses.push_back(-p[i][size_t(window[i + 1])]);
      double d = 0;
      for (size_t k = 0; k < kVocabulary; k++) d += std::exp(p[i][k]) * (p[i][k] - q[i][k]);
      divergences.push_back(d);
      same.push_back(std::max_element(p[i].begin(), p[i].end()) - p[i].begin() ==
                     std::max_element(q[i].begin(), q[i].end()) - q[i].begin());
    }
  }
  const std::string saved = temporary_path("perplexity.logits"), ctx = format("{}", kWindow);
  const Ran r =
      gimbal({"perplexity", story_file("f32"), "-f", c.file, "--ctx", ctx, "--save-logits", saved, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json j = json_of(r);
  expect_keys(j, {"model", "device", "fallbacks", "perplexity", "standard_error", "nats_per_token",
                  "tokens_scored", "windows", "window", "against"});
  EXPECT_EQ(j["windows"], windows);
  EXPECT_EQ(j["window"], kWindow);
  EXPECT_EQ(j["tokens_scored"], losses.size());
  EXPECT_NEAR(j["nats_per_token"].get<double>(), mean(losses), 1e-9);
  EXPECT_NEAR(j["perplexity"].get<double>(), std::exp(mean(losses)), 1e-8);
  EXPECT_NEAR(j["standard_error"].get<double>(), std::exp(mean(losses)) * standard_error(losses), 1e-8);
  EXPECT_TRUE(j["against"].is_null());

  const Ran other =
      gimbal({"perplexity", story_file("q4_0"), "-f", c.file, "--ctx", ctx, "--against", saved, "--json"});
  ASSERT_EQ(other.code, 0) << other.err;
  const Json against = json_of(other)["against"];
  EXPECT_NEAR(against["perplexity"].get<double>(), j["perplexity"].get<double>(), 1e-12);
  EXPECT_NEAR(against["divergence"].get<double>(), mean(divergences), 1e-9);
  EXPECT_NEAR(against["divergence_standard_error"].get<double>(), standard_error(divergences), 1e-9);
  EXPECT_NEAR(against["max_divergence"].get<double>(),
              *std::max_element(divergences.begin(), divergences.end()), 1e-9);
  EXPECT_NEAR(against["top_1_agreement"].get<double>(), mean(same), 1e-12);
  EXPECT_GT(against["divergence"].get<double>(), 1e-4) << "q4_0 is not f32";

  // A model is itself.
  const Json self = json_of(gimbal({"perplexity", story_file("f32"), "-f", c.file, "--ctx", ctx, "--against",
                                    saved, "--json", "-t", "2", "--batch", "7"}))["against"];
  EXPECT_EQ(self["divergence"], 0.0) << "the same bits with other threads and batches";
  EXPECT_EQ(self["top_1_agreement"], 1.0);
  const Ran people = gimbal({"perplexity", story_file("q4_0"), "--ctx", ctx, "--against", saved},
                            {.input = *read_file(c.file)});
  EXPECT_SAYS(people.out, format("perplexity   {:.4f}", json_of(other)["perplexity"].get<double>()));
  EXPECT_SAYS(people.out, "nats a token from the saved model");
}

TEST(Perplexity, AShortTextIsOneWindow) {
  const Case c = text();
  const Json j = json_of(gimbal({"perplexity", "-f", c.file, "--json"}));
  EXPECT_EQ(j["windows"], 1);
  EXPECT_EQ(j["window"], c.tokens.size());
  EXPECT_EQ(j["tokens_scored"], c.tokens.size() - c.tokens.size() / 2 - 1);
}

TEST(Perplexity, RefusesWhatMakesNoSense) {
  const Case c = text();
  const std::string saved = temporary_path("refused.logits"), none = temporary_path("none.logits");
  auto run = [&](const Args& more, const std::string& model = "default") {
    Args args{"perplexity", model, "-f", c.file, "--ctx", "16"};
    args.insert(args.end(), more.begin(), more.end());
    return gimbal(args);
  };
  ASSERT_EQ(run({"--save-logits", saved}).code, 0);
  Ran r = gimbal({"perplexity"}, {.input = "a"});
  EXPECT_EQ(r.code, 2);
  EXPECT_SAYS(r.err, "4 or more are needed");
  r = run({"--against", saved, "--ctx", "20"});
  EXPECT_EQ(r.code, 2);
  EXPECT_SAYS(r.err, "give the same text and the same --ctx");
  EXPECT_EQ(run({"--against", none}).code, 1);
  r = run({"--against", c.file});
  EXPECT_EQ(r.code, 2);
  EXPECT_SAYS(r.err, "does not hold saved logits");
  const std::string whole = *read_file(saved);
  for (size_t bytes : {size_t(0), size_t(20), size_t(100), whole.size() - 1}) {
    ASSERT_TRUE(write_file(none, whole.substr(0, bytes)));
    r = run({"--against", none});
    EXPECT_NE(r.code, 0) << bytes;
    EXPECT_SAYS(r.err, bytes < 32 ? "does not hold saved logits" : "ends too early");
  }
  std::string other = whole;
  other[32]++;  // the first token
  ASSERT_TRUE(write_file(none, other));
  EXPECT_SAYS(run({"--against", none}).err, "was made from another text");
  // What is read is not written over, and a failure keeps what was there.
  EXPECT_EQ(run({"--against", saved, "--save-logits", saved}).code, 2);
  EXPECT_EQ(run({"--save-logits", c.file}).code, 2);
  EXPECT_EQ(*read_file(saved), whole);
}

}  // namespace
}  // namespace gimbal::test
