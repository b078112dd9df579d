// What a user meets of a backend whose driver is a fake (fake_driver.cmake): gpu/program_checks.h, and the
// case without any driver.
#pragma once
#include "gpu/program_checks.h"
#include "support/cli.h"

namespace gimbal::test {

inline Environment fake_driver() { return {{"LD_LIBRARY_PATH", std::string(FAKE_DRIVERS) + "/whole"}}; }

// Softly: the CPU computes, and the reason is said. Strictly: exit code 4.
inline void check_without_driver(const std::string& backend) {
  const Environment e = with_cache({});
  for (const char* option : {"--backend", "--gpu-backend"}) {
    const Args run = with(short_story(), {option, backend});
    const Ran soft = gimbal_with(with(run, {"--json"}), e);
    EXPECT_EQ(soft.code, 0) << soft.err;
    const Json used = json_of(soft);
    EXPECT_EQ(used["device"], "cpu:0");
    expect_the_story(used);
    EXPECT_SAYS(soft.err, "note: " + backend + ": ");
    EXPECT_SAYS(soft.err, "using cpu:0 instead");
    const Ran strict = gimbal_with(with(run, {"--strict"}), e);
    EXPECT_EQ(strict.code, 4);
    EXPECT_EQ(strict.out, "");
    EXPECT_SAYS(strict.err, "--strict: the requested backend '" + backend + "' is not available");
  }
}

// A driver that opens the device, and whose queue does not work: the trial before the choice refuses it.
inline void check_queue_fails(const std::string& backend, const std::string& upload) {
  Environment e = with_cache(fake_driver());
  e["FAKE_DRIVER_FAILS"] = upload;
  const Json listed = backend_of(json_of(gimbal_with({"backends", "--json"}, e)), backend);
  EXPECT_EQ(listed["available"], false);
  EXPECT_EQ(listed["code"], "device-lost");
  EXPECT_SAYS(listed["reason"].get<std::string>(), "the trial of its queue failed");
  EXPECT_SAYS(listed["reason"].get<std::string>(), upload);
  ASSERT_EQ(listed["refused"].size(), 1u);
  const Args run = with(short_story(), {"--backend", backend});
  const Ran soft = gimbal_with(with(run, {"--json"}), e);
  EXPECT_NE(json_of(soft)["device"], backend + ":0");  // the other vendor's driver may be pretended, too
  EXPECT_SAYS(soft.err, "the trial of its queue failed");
  EXPECT_EQ(gimbal_with(with(run, {"--strict"}), e).code, 4);
}

// A device that is lost while a text is computed: the CPU completes the text, and the reason is said.
inline void check_lost(const std::string& backend) {
  const Args run = with(short_story(), {"--backend", backend});
  for (const char* launches : {"0", "30", "100"}) {
    Environment e = with_cache(fake_driver());
    e["FAKE_DRIVER_LOST_AFTER"] = launches;
    const Ran soft = gimbal_with(with(run, {"--json"}), e);
    EXPECT_EQ(soft.code, 0) << launches << soft.err;
    expect_the_story(json_of(soft));
    EXPECT_SAYS(soft.err, backend + ":0 was lost after");
    EXPECT_SAYS(soft.err, "continuing on cpu:0");
    const Ran strict = gimbal_with(with(run, {"--strict"}), e);
    EXPECT_EQ(strict.code, 4) << launches << strict.err;
    EXPECT_FALSE(contains(strict.err, "continuing"));
  }
}

}  // namespace gimbal::test
