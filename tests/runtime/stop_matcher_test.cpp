// Checks stop strings by hand-written cases and against a search over the whole text, for random texts, stop
// strings and cuts into pieces.
#include "runtime/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

namespace gimbal {
namespace {

struct Whole {
  std::string text;
  std::optional<std::string> which;
};

// The definition: the first byte at which any stop string ends; there, the longest of them.
Whole search_whole_text(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); end++) {
    const std::string* longest = nullptr;
    for (const std::string& s : stops) {
      if (s.empty() || s.size() > end || text.compare(end - s.size(), s.size(), s) != 0) continue;
      if (!longest || s.size() > longest->size()) longest = &s;
    }
    if (longest) return {text.substr(0, end - longest->size()), *longest};
  }
  return {text, {}};
}

TEST(StopMatcher, HoldsBackWhatMayBeginAStop) {
  StopMatcher m({"</s>", "\nUser:"});
  EXPECT_EQ(m.push("Hello").text, "Hello");
  EXPECT_EQ(m.push(" <").text, " ");
  EXPECT_EQ(m.push("b>\n").text, "<b>");
  EXPECT_EQ(m.push("Us").text, "");
  EXPECT_EQ(m.push("es\nUser").text, "\nUses");
  auto out = m.push(": and more");
  EXPECT_EQ(out.text, "");
  EXPECT_TRUE(out.stopped);
  EXPECT_EQ(out.which, "\nUser:");
  out = m.push("never shown");
  EXPECT_EQ(out.text, "");
  EXPECT_TRUE(out.stopped);
  EXPECT_EQ(out.which, "\nUser:");
  EXPECT_EQ(m.finish(), "");
}

TEST(StopMatcher, FinishReturnsWhatWasHeldBack) {
  StopMatcher m({"END"});
  EXPECT_EQ(m.push("the EN").text, "the ");
  EXPECT_EQ(m.finish(), "EN");
  EXPECT_EQ(m.finish(), "");
  EXPECT_EQ(m.push("D").text, "D");  // what was given out is not part of a stop any more
}

TEST(StopMatcher, TheFirstCompleteStopWins) {
  StopMatcher inner({"abcd", "bc"});
  auto out = inner.push("xabcd");
  EXPECT_EQ(out.text, "xa");
  EXPECT_EQ(out.which, "bc");
  StopMatcher same_end({"bc", "abc"});
  out = same_end.push("xabc");
  EXPECT_EQ(out.text, "x");
  EXPECT_EQ(out.which, "abc");
  StopMatcher same_start({"abcd", "ab"});
  EXPECT_EQ(same_start.push("abcd").which, "ab");
}

TEST(StopMatcher, NothingToStopAt) {
  for (auto stops : {std::vector<std::string>{}, std::vector<std::string>{""}}) {
    StopMatcher m(stops);
    auto out = m.push("anything");
    EXPECT_EQ(out.text, "anything");
    EXPECT_FALSE(out.stopped);
    EXPECT_EQ(m.push("").text, "");
    EXPECT_EQ(m.finish(), "");
  }
}

TEST(StopMatcher, CharactersStayWhole) {
  StopMatcher m({"\xe2\x82\xac!"});  // euro sign, exclamation mark
  EXPECT_EQ(m.push("5 \xe2\x82\xac").text, "5 ");
  EXPECT_EQ(m.push("\xe2\x82\xad").text,
            "\xe2\x82\xac\xe2\x82\xad");  // kip sign: shares two bytes with the euro
}

TEST(StopMatcher, LongRepetitiveStopsTakeNoLongTime) {
  // Quadratic work would be 10^11 steps here, and the test's time limit would end it.
  StopMatcher m({std::string(200000, 'a') + "b"});
  size_t shown = 0;
  for (int i = 0; i < 1000; i++) shown += m.push(std::string(1000, 'a')).text.size();
  EXPECT_EQ(shown, 800000u);
  EXPECT_TRUE(m.push("b").stopped);
}

TEST(StopMatcher, EmptyStopsAreRefused) {
  EXPECT_TRUE(validate_stops({}));
  EXPECT_TRUE(validate_stops(std::vector<std::string>{"a", "\n"}));
  Status bad = validate_stops(std::vector<std::string>{"a", ""});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::Usage);
  EXPECT_NE(bad.error().message.find("'stops'"), std::string::npos);
}

TEST(StopMatcher, EveryCutGivesTheAnswerOfTheWholeText) {
  std::mt19937 r(1);
  int stopped = 0, ran_out = 0, held = 0;
  for (int round = 0; round < 200000; round++) {
    unsigned letters = 1 + r() % 3;
    auto random_text = [&](size_t n) {
      std::string s;
      while (n--) s += char('a' + r() % letters);
      return s;
    };
    std::vector<std::string> stops(r() % 4);
    size_t longest = 1;
    for (std::string& s : stops) {
      s = random_text(r() % 12);
      longest = std::max(longest, s.size());
    }
    // Half of the texts are beginnings of the stops in a row: near misses, where a matcher has to fall back.
    std::string text;
    if (round % 2 || stops.empty()) {
      text = random_text(r() % 40);
    } else {
      while (text.size() < 40) {
        text += stops[r() % stops.size()].substr(0, r() % 12);
        text += random_text(r() % 2 + 1);
      }
    }
    Whole want = search_whole_text(text, stops);
    StopMatcher m(stops);
    std::string shown;
    bool has_stopped = false;
    unsigned piece = 1 + r() % 9;
    for (size_t at = 0; at < text.size() && !has_stopped;) {
      size_t n = std::min<size_t>(r() % (piece + 1), text.size() - at);
      auto out = m.push(std::string_view(text).substr(at, n));
      at += n;
      shown += out.text;
      has_stopped = out.stopped;
      if (out.stopped) {
        ASSERT_TRUE(want.which) << text;
        ASSERT_EQ(out.which, *want.which) << text;
        stopped++;
      } else {
        ASSERT_LE(at - shown.size(), longest - 1) << text;
        held += at > shown.size();
      }
    }
    shown += m.finish();
    ran_out += !has_stopped;
    ASSERT_EQ(has_stopped, want.which.has_value()) << text;
    ASSERT_EQ(shown, want.text) << text;
  }
  EXPECT_GT(stopped, 50000);
  EXPECT_GT(ran_out, 50000);
  EXPECT_GT(held, 50000);
}

}  // namespace
}  // namespace gimbal
