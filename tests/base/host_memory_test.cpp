// Memory limits of control groups, over files made by the test: what Linux writes there is known from its
// documentation (cgroup-v2.rst, cgroup-v1/memory.rst).
#include "base/host_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/golden.h"

namespace gimbal {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class HostMemoryFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = test::temporary_path(testing::UnitTest::GetInstance()->current_test_info()->name());
    put("/proc/meminfo", "MemTotal:       1048576 kB\nMemFree: 1 kB\nMemAvailable:    524288 kB\n");
  }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void v2(const std::string& group, const std::string& limit, uint64_t used, uint64_t droppable = 0) {
    const std::string folder = "/sys/fs/cgroup" + group;
    put(folder + "/memory.max", limit + "\n");
    put(folder + "/memory.current", std::to_string(used) + "\n");
    put(folder + "/memory.stat", "anon 5\ninactive_file " + std::to_string(droppable) + "\n");
  }
  HostMemory found() const { return host_memory(root_); }
  std::string root_;
};

TEST_F(HostMemoryFiles, WithoutLimitsIsTheMachines) {
  EXPECT_EQ(found().total, 1024 * kMiB);
  EXPECT_EQ(found().available, 512 * kMiB);
  EXPECT_EQ(found().limited_by, "");
  put("/proc/self/cgroup", "0::/\n");
  v2("", "max", 100 * kMiB);
  EXPECT_EQ(found().available, 512 * kMiB) << "max is no limit";
}

TEST_F(HostMemoryFiles, TakesWhatTheAddressSpaceLeaves) {
  // Limits that the process itself never comes near, sanitizers included.
  constexpr uint64_t kMax = uint64_t(1) << 62;
  put("/proc/meminfo", "MemTotal: 9007199254740992 kB\nMemAvailable: 9007199254740992 kB\n");  // 2^63 bytes
  put("/proc/self/statm", "1000 10 10 1 0 10 0\n");                                            // pages
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limit{kMax, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const HostMemory m = found();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(m.total, kMax);
  EXPECT_EQ(m.available, kMax - 1000 * uint64_t(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(m.limited_by, "ulimit -v");
}

TEST_F(HostMemoryFiles, TakesTheLimitOfVersion2) {
  put("/proc/self/cgroup", "0::/box\n");
  v2("/box", std::to_string(300 * kMiB), 100 * kMiB);
  EXPECT_EQ(found().total, 300 * kMiB);
  EXPECT_EQ(found().available, 200 * kMiB);
  EXPECT_EQ(found().limited_by, root_ + "/sys/fs/cgroup/box/memory.max");
  v2("/box", std::to_string(300 * kMiB), 100 * kMiB, 40 * kMiB);
  EXPECT_EQ(found().available, 240 * kMiB) << "pages of files can be dropped";
  v2("/box", std::to_string(300 * kMiB), 310 * kMiB);
  EXPECT_EQ(found().available, 0u) << "already above it";
  v2("/box", std::to_string(900 * kMiB), 100 * kMiB);
  EXPECT_EQ(found().available, 512 * kMiB) << "the machine has less";
}

TEST_F(HostMemoryFiles, TakesTheSmallestOfAllGroupsAround) {
  put("/proc/self/cgroup", "0::/outer/middle/inner\n");
  v2("/outer", std::to_string(200 * kMiB), 150 * kMiB);
  v2("/outer/middle", "max", 10 * kMiB);
  v2("/outer/middle/inner", std::to_string(400 * kMiB), 10 * kMiB);
  EXPECT_EQ(found().total, 200 * kMiB);
  EXPECT_EQ(found().available, 50 * kMiB);
  EXPECT_EQ(found().limited_by, root_ + "/sys/fs/cgroup/outer/memory.max");
}

TEST_F(HostMemoryFiles, FindsTheLimitOfAContainerWhoseOwnPathIsNotToBeSeen) {
  put("/proc/self/cgroup", "0::/kubepods/pod7/container\n");
  v2("", std::to_string(64 * kMiB), 4 * kMiB);
  EXPECT_EQ(found().available, 60 * kMiB);
}

TEST_F(HostMemoryFiles, TakesTheLimitOfVersion1) {
  put("/proc/self/cgroup", "12:cpu,cpuacct:/box\n5:memory:/box\n0::/box\n");
  const std::string folder = "/sys/fs/cgroup/memory/box";
  put(folder + "/memory.limit_in_bytes", std::to_string(128 * kMiB));
  put(folder + "/memory.usage_in_bytes", std::to_string(100 * kMiB));
  put(folder + "/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(30 * kMiB) + "\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none, as version 1 says it
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(500 * kMiB));
  EXPECT_EQ(found().total, 128 * kMiB);
  EXPECT_EQ(found().available, 58 * kMiB);
  EXPECT_EQ(found().limited_by, root_ + folder + "/memory.limit_in_bytes");
}

TEST_F(HostMemoryFiles, SurvivesNonsense) {
  put("/proc/self/cgroup", "\n:\n0\n0::\n0::relative\n5:memory\n7:memory:/x/../..\n");
  put("/sys/fs/cgroup/memory.max", "-5\n");
  EXPECT_EQ(found().available, 512 * kMiB);
  put("/proc/meminfo", "");
  EXPECT_GT(found().total, 0u) << "the system is asked instead";
}

TEST(HostMemory, OfThisMachineIsThere) {
  const HostMemory m = host_memory();
  EXPECT_GT(m.total, 100 * kMiB);
  EXPECT_GT(m.available, 0u);
  EXPECT_LE(m.available, m.total);
}

}  // namespace
}  // namespace gimbal
