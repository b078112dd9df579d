// Ollama's keep_alive: numbers of seconds, and the durations of Go's time.ParseDuration.
#include <gtest/gtest.h>

#include "server/api/ollama.h"

namespace gimbal::test {
namespace {

// The seconds of a request with this field; -2: the request is refused, -3: it has no such field.
double seconds_of(const Json& value) {
  const Json body = {{"keep_alive", value}};
  api::Fields fields(body);
  const auto seconds = api::read_keep_alive(fields);
  const auto wrong = fields.finish();
  if (!wrong) return seconds.value_or(-3);
  EXPECT_FALSE(seconds);
  EXPECT_EQ(wrong->param, "keep_alive");
  EXPECT_NE(wrong->message.find("such as \"5m\""), std::string::npos) << wrong->message;
  return -2;
}

TEST(KeepAlive, SecondsAndDurations) {
  for (const auto& [value, seconds] : std::vector<std::pair<Json, double>>{{0, 0},
                                                                           {300, 300},
                                                                           {1.5, 1.5},
                                                                           {"0", 0},
                                                                           {"90", 90},
                                                                           {"2.5", 2.5},
                                                                           {"5m", 300},
                                                                           {"24h", 86400},
                                                                           {"1h30m", 5400},
                                                                           {"1m1s", 61},
                                                                           {"500ms", 0.5},
                                                                           {"1.5h", 5400},
                                                                           {"2h45m10.5s", 9910.5},
                                                                           {"+3s", 3},
                                                                           {"250us", 250e-6},
                                                                           {"8ns", 8e-9},
                                                                           {".5s", 0.5},
                                                                           {"1.s", 1},
                                                                           {"1m500ms", 60.5}})
    EXPECT_DOUBLE_EQ(seconds_of(value), seconds) << value;
}

TEST(KeepAlive, ForEver) {
  for (const Json& value :
       {Json(-1), Json(-0.5), Json("-1"), Json("-1s"), Json("-1h2m"), Json(1e10), Json("9999999h")})
    EXPECT_EQ(seconds_of(value), -1) << value;
  EXPECT_EQ(seconds_of(1e9), 1e9);
}

TEST(KeepAlive, NeitherOfThem) {
  for (const Json& value :
       {Json(""),    Json("-"),        Json("."),      Json("m"),   Json("5x"),  Json("5 m"),  Json("1h30"),
        Json("1h3"), Json("1..5s"),    Json("1.2.3s"), Json("5mm"), Json("5m "), Json("--5m"), Json("5d"),
        Json(true),  Json::array({5}), Json("1e9h"),   Json("inf"), Json("nan"), Json("0x10s")})
    EXPECT_EQ(seconds_of(value), -2) << value;
  EXPECT_EQ(seconds_of(nullptr), -3) << "as if it were absent";
}

}  // namespace
}  // namespace gimbal::test
