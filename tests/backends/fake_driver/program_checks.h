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

}  // namespace gimbal::test
