// Signal 0 asks only whether a process exists, so that these tests end none, even where the checks fail.
#include "base/send_signal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>

namespace gimbal {
namespace {

TEST(SendSignal, ReachesAProcessAndItsGroup) {
  EXPECT_TRUE(send_signal(getpid(), 0));
  setpgid(0, 0);  // in a process namespace, a group from outside has the number 0
  EXPECT_TRUE(send_signal_to_group(getpgrp(), 0));
}

// A failed fork() gives -1, a worker that has not started 0, and a number that does not fit may become
// negative.
TEST(SendSignal, NeverReachesNumbersThatStandForMoreThanOneProcess) {
  for (const pid_t pid : {1, 0, -1, -2, -int(getpgrp()), INT_MIN}) {
    errno = 0;
    EXPECT_FALSE(send_signal(pid, 0)) << pid;
    EXPECT_EQ(errno, EINVAL) << pid;
    errno = 0;
    EXPECT_FALSE(send_signal_to_group(pid, 0)) << pid;
    EXPECT_EQ(errno, EINVAL) << pid;
  }
}

}  // namespace
}  // namespace gimbal
