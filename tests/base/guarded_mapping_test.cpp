// Files that lose bytes while they are mapped: zeros and a word, not the end of the program; other bus errors
// go where they went before.
#include "base/guarded_mapping.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "support/golden.h"

namespace gimbal {
namespace {

constexpr size_t kPage = 4096;

class GuardedMappingTest : public testing::Test {
 protected:
  GuardedMapping map() {
    EXPECT_TRUE(write_file(path_, std::string(8 * kPage, 'x')));
    file_ = std::move(*InputFile::open(path_));
    auto m = GuardedMapping::map(file_);
    EXPECT_TRUE(m) << m.error().message;
    return std::move(*m);
  }
  static char at(const GuardedMapping& m, size_t i) {
    return char(*const_cast<const volatile std::byte*>(m.bytes().data() + i));
  }
  const std::string path_ = test::temporary_path("mapped");
  InputFile file_;
};

TEST_F(GuardedMappingTest, WhatIsCutOffReadsAsZerosAndIsSaid) {
  GuardedMapping m = map(), other = map();
  EXPECT_EQ(m.bytes().size(), 8 * kPage);
  EXPECT_EQ(at(m, 8 * kPage - 1), 'x');
  EXPECT_FALSE(m.lost());
  GuardedMapping moved = std::move(m);
  std::filesystem::resize_file(path_, 3 * kPage);
  EXPECT_EQ(at(moved, 2 * kPage), 'x');
  EXPECT_FALSE(moved.lost()) << "nothing of it was touched";
  EXPECT_EQ(at(moved, 5 * kPage), 0);
  EXPECT_TRUE(moved.lost());
  EXPECT_EQ(at(moved, 7 * kPage), 0);
  EXPECT_EQ(at(moved, 3 * kPage), 0);
  EXPECT_EQ(at(moved, 0), 'x');
  EXPECT_FALSE(other.lost());
  EXPECT_FALSE(map().lost()) << "a place in the list begins anew";
}

TEST_F(GuardedMappingTest, ThereAreOnlySoMany) {
  std::vector<GuardedMapping> all;
  for (int i = 0; i < GuardedMapping::kMost; i++) all.push_back(map());
  EXPECT_FALSE(GuardedMapping::map(file_));
  all.pop_back();
  EXPECT_TRUE(GuardedMapping::map(file_));
}

using GuardedMappingDeathTest = GuardedMappingTest;

// How a bus error ends a program: AddressSanitizer has a handler for it, and exits.
bool ended_by_bus_error(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (WIFEXITED(status) && WEXITSTATUS(status) != 0) ||
         (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
#endif
}

TEST_F(GuardedMappingDeathTest, AnyOtherBusErrorEndsTheProgramAsBefore) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const GuardedMapping m = map();
        raise(SIGBUS);
      },
      ended_by_bus_error, "");
  EXPECT_EXIT(
      {
        const GuardedMapping m = map();
        const auto* p = static_cast<const volatile char*>(
            mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, file_.descriptor(), 0));
        std::filesystem::resize_file(path_, 0);
        (void)p[kPage];
      },
      ended_by_bus_error, "");
}

TEST_F(GuardedMappingDeathTest, AHandlerThatWasThereHearsOfOthers) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        signal(SIGBUS, [](int) { _exit(42); });
        const GuardedMapping m = map();
        raise(SIGBUS);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace gimbal
