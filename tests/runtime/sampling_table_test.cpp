// The table of sampling settings has every member of the public struct, and is what checks them.
#include "runtime/sampling_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "runtime/sampler.h"
#include "support/fields.h"

namespace {

using namespace gimbal;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Settings without an option on the command line, and why.
const std::map<std::string, std::string> kNoOption = {
    {"logit_bias", "token ids are for programs: the library and the server's APIs take them"}};
// Settings without a field in the APIs that follow OpenAI's, and why.
const std::map<std::string, std::string> kNoJson = {
    {"greedy", "a temperature of 0"},
    {"seed", "read apart: without one it is random (set_seed)"},
    {"logit_bias", "read apart: an object of token ids (read_logit_bias)"},
    {"penalty_window", "these APIs look at the whole text"}};

TEST(SamplingTable, HasEveryMemberOnce) {
  EXPECT_EQ(std::size(kSamplingSettings), test::field_count<Sampling>());
  std::set<std::string> fields, options;
  for (const SamplingSetting& s : kSamplingSettings) {
    EXPECT_TRUE(fields.insert(s.field).second) << s.field;
    EXPECT_NE(bool(s.option), kNoOption.contains(s.field)) << s.field;
    EXPECT_TRUE(!s.option || options.insert(s.option).second) << s.field;
    EXPECT_NE(bool(s.openai.name), kNoJson.contains(s.field)) << s.field;
  }
}

TEST(SamplingTable, EveryNumberIsChecked) {
  EXPECT_TRUE(validate(Sampling()));
  for (const SamplingSetting& s : kSamplingSettings) {
    const auto refused = [&](const Sampling& values) {
      const Status ok = validate(values);
      ASSERT_FALSE(ok) << s.field;
      EXPECT_STREQ(ok.error().field, s.field);
      EXPECT_EQ(ok.error().limit, s.expected);
      EXPECT_EQ(ok.error().message.find(std::string("'") + s.field + "' is "), 0u) << ok.error().message;
    };
    Sampling values;
    if (const auto* number = std::get_if<float Sampling::*>(&s.member)) {
      for (float x :
           {std::nextafter(float(s.low), -kInfinity), kInfinity, NAN, s.above_low ? float(s.low) : NAN})
        values.** number = x, refused(values);
      values.** number = float(s.off.value_or(s.low));
      EXPECT_TRUE(validate(values)) << s.field;
    } else if (const auto* whole = std::get_if<int Sampling::*>(&s.member)) {
      values.** whole = int(s.low) - 1, refused(values);
      values.** whole = int(s.low);
      EXPECT_TRUE(validate(values)) << s.field;
    }
  }
}

TEST(SamplingTable, EachApiHasItsDefaults) {
  const Sampling openai = default_sampling(&SamplingSetting::openai);
  EXPECT_EQ(openai.temperature, 1.0f);
  EXPECT_EQ(openai.top_k, 0);
  EXPECT_EQ(openai.top_p, 1.0f);
  EXPECT_EQ(openai.min_p, 0.0f);
  EXPECT_EQ(openai.penalty_window, -1);
  const Sampling ollama = default_sampling(&SamplingSetting::ollama);
  EXPECT_EQ(ollama.temperature, 0.8f);
  EXPECT_EQ(ollama.top_k, 40);
  EXPECT_EQ(ollama.top_p, 0.9f);
  EXPECT_EQ(ollama.min_p, 0.0f);
  EXPECT_EQ(ollama.repeat_penalty, 1.1f);
  EXPECT_EQ(ollama.penalty_window, 64);
}

}  // namespace
