// What a backend said, taken apart: what happened, what to do, and the reason, where the last line is one.
#include "device/contract.h"

#include <gtest/gtest.h>

#include "device/reason.h"

namespace gimbal {
namespace {

void expect(const char* said, const char* message, const char* remedy, const char* reason) {
  const Error e = backend_error(said, reason::kOpenFailed);
  SCOPED_TRACE(said ? said : "NULL");
  EXPECT_EQ(e.code, Code::NoBackend);
  EXPECT_EQ(e.message, message);
  EXPECT_EQ(e.remedy, remedy);
  EXPECT_STREQ(e.reason, reason);
}

TEST(BackendWords, OneLineIsWhatHappened) {
  expect("the card is gone", "the card is gone", "", reason::kOpenFailed);
}

TEST(BackendWords, TheNextLinesAreWhatToDo) {
  expect("too old\nget 550", "too old", "get 550", reason::kOpenFailed);
  expect("too old\nget 550\nor 560", "too old", "get 550\nor 560", reason::kOpenFailed);
}

TEST(BackendWords, ALastLineThatIsAReasonIsTheReasonAndNothingElse) {
  expect("too old\nget 550\ndriver-too-old", "too old", "get 550", reason::kDriverTooOld);
  expect("too old\ndriver-too-old", "too old", "", reason::kDriverTooOld);
  expect("driver-too-old", "driver-too-old", "", reason::kOpenFailed);
  expect("too old\ndriver-too-old\n", "too old", "driver-too-old\n", reason::kOpenFailed);
}

TEST(BackendWords, NothingSaid) {
  expect(nullptr, "no reason given", "", reason::kOpenFailed);
  expect("", "no reason given", "", reason::kOpenFailed);
  expect("\nno-device", "no reason given", "", reason::kNoDevice);
}

TEST(BackendWords, OnlyWholeReasonsAreKnown) {
  EXPECT_STREQ(known_reason("no-device"), reason::kNoDevice);
  EXPECT_EQ(known_reason("no-devices"), nullptr);
  EXPECT_EQ(known_reason("no"), nullptr);
  EXPECT_EQ(known_reason(""), nullptr);
}

}  // namespace
}  // namespace gimbal
