// Pages of a mapped file that threads bring into memory: all of them, no accesses, and the system's refusals.
// Threads: those that bring pages.
#include "base/prefault.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/guarded_mapping.h"
#include "support/cli.h"

namespace gimbal {
namespace {

using test::contains;

constexpr size_t kPage = 4096, kPiece = 8 << 20;

class PrefaultTest : public testing::Test {
 protected:
  GuardedMapping map(size_t bytes) {
    EXPECT_TRUE(write_file(path_, std::string(bytes, 'x')));
    auto file = InputFile::open(path_);
    EXPECT_TRUE(file);
    auto m = GuardedMapping::map(*file);
    EXPECT_TRUE(m) << m.error().message;
    return std::move(*m);
  }
  // The pages of a mapping that an access would find without a fault, by the system's own table.
  static size_t present(Bytes b) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    size_t n = 0;
    FILE* f = fopen("/proc/self/pagemap", "rb");
    if (!f) return ADD_FAILURE() << "no /proc/self/pagemap", 0;
    for (size_t at = 0; at < b.size(); at += page) {
      uint64_t entry = 0;
      fseek(f, long((reinterpret_cast<uintptr_t>(b.data()) + at) / page * sizeof entry), SEEK_SET);
      if (fread(&entry, sizeof entry, 1, f) == 1) n += entry >> 63;
    }
    fclose(f);
    return n;
  }
  const std::string path_ = test::temporary_path("prefaulted");
};

TEST_F(PrefaultTest, AllPagesOfTheRangesArePresent) {
  const size_t bytes = 3 * kPiece + 100;
  for (unsigned threads : {1u, 3u}) {
    const GuardedMapping m = map(bytes);
    ASSERT_EQ(present(m.bytes()), 0u);
    Prefault p({m.bytes()}, threads);
    const Prefault::Report r = p.finish();
    EXPECT_EQ(r.stopped, "");
    EXPECT_EQ(r.bytes, 3 * kPiece + kPage);
    EXPECT_EQ(r.wanted, r.bytes);
    EXPECT_EQ(r.threads, threads);
    EXPECT_GT(r.seconds, 0);
    EXPECT_EQ(present(m.bytes()), r.bytes / kPage);
    EXPECT_FALSE(m.lost());
    EXPECT_SAYS(r.text(), format("25.2 MB in "));
  }
}

TEST_F(PrefaultTest, WholePagesOfPartsAndNoneOfAnEmptyRange) {
  const GuardedMapping m = map(64 * kPage);
  std::set<size_t> asked;  // pages of the file
  Prefault p({m.bytes().subspan(3 * kPage + 5, 10), m.bytes().subspan(7 * kPage, 0),
              m.bytes().subspan(10 * kPage - 1, 2)},
             1, [&](Bytes b) {
               for (size_t at = 0; at < b.size(); at += kPage)
                 asked.insert((size_t(b.data() - m.bytes().data()) + at) / kPage);
               return 0;
             });
  EXPECT_EQ(p.finish().bytes, 3 * kPage);
  EXPECT_EQ(asked, (std::set<size_t>{3, 9, 10}));
  Prefault none({Bytes()}, 4, [](Bytes) { return ADD_FAILURE() << "of no page", 0; });
  EXPECT_EQ(none.finish().threads, 0u);
  EXPECT_EQ(none.finish().stopped, "");
}

// No signal, no zeros: the system's error names the place.
TEST_F(PrefaultTest, AFileThatIsCutMeanwhile) {
  const GuardedMapping m = map(6 * kPiece);
  int calls = 0;
  Prefault p({m.bytes()}, 1, [&](Bytes b) {
    if (calls++ == 2) std::filesystem::resize_file(path_, kPage);
    return Prefault::populate(b);
  });
  const Prefault::Report r = p.finish();
  EXPECT_SAYS(r.stopped, "truncated");
  ASSERT_TRUE(r.unreadable);
  const auto at = size_t(r.unreadable - m.bytes().data());
  EXPECT_LE(at, 2 * kPiece);
  EXPECT_GT(at + kPiece, kPiece);
  EXPECT_LT(r.bytes, 3 * kPiece);
  EXPECT_FALSE(m.lost()) << "no access was made";
  EXPECT_SAYS(r.text(), "of 50.3 MB: the file was truncated");
}

TEST_F(PrefaultTest, ASystemThatCannot) {
  const GuardedMapping m = map(3 * kPiece);
  for (const auto& [error, why] : std::vector<std::pair<int, const char*>>{{EINVAL, "since 5.14"},
                                                                           {ENOSYS, "since 5.14"},
                                                                           {EPERM, "since 5.14"},
                                                                           {ENOMEM, strerror(ENOMEM)}}) {
    int calls = 0;
    Prefault p({m.bytes()}, 1, [&, error = error](Bytes) { return calls++, error; });
    const Prefault::Report r = p.finish();
    EXPECT_EQ(calls, 1) << "it is not asked again";
    EXPECT_SAYS(r.stopped, why);
    EXPECT_EQ(r.bytes, 0u);
    EXPECT_FALSE(r.unreadable);
  }
  // This system's answer to a call that it does not know, or that names no whole page.
  EXPECT_EQ(Prefault::populate(m.bytes().subspan(1, kPage)), EINVAL);
}

// The first error also ends the other threads. Otherwise they would read the whole terabyte.
TEST_F(PrefaultTest, AnErrorEndsAllThreads) {
  const Bytes much(reinterpret_cast<const std::byte*>(uintptr_t(1) << 40), size_t(1) << 40);
  std::atomic<size_t> calls{0};
  Prefault p({much}, 2, [&](Bytes) {
    const size_t call = calls++;
    if (call == 0) return EIO;
    if (call < 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  });
  const Prefault::Report r = p.finish();
  EXPECT_SAYS(r.stopped, "cannot be read");
  EXPECT_LT(calls, much.size() / kPiece);
  EXPECT_EQ(r.bytes, (calls - 1) * kPiece);
}

// A terabyte, at a millisecond for each piece, takes a minute.
TEST_F(PrefaultTest, CancellingLeavesTheRest) {
  const Bytes much(reinterpret_cast<const std::byte*>(uintptr_t(1) << 40), size_t(1) << 40);
  std::atomic<size_t> calls{0};
  std::set<const std::byte*> asked;
  std::mutex mutex;
  const auto slowly = [&](Bytes b) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(asked.insert(b.data()).second) << "twice";
    return calls++, 0;
  };
  {
    Prefault p({much}, 2, slowly);
    while (calls == 0) std::this_thread::yield();
    const Prefault::Report r = p.cancel();
    EXPECT_EQ(r.stopped, "it was cancelled");
    EXPECT_EQ(r.bytes, calls * kPiece);
    EXPECT_LT(r.bytes, r.wanted);
  }
  const size_t before = calls;
  asked.clear();
  { Prefault p({much}, 2, slowly); }  // is cancelled
  EXPECT_LT(calls - before, much.size() / kPiece);
}

}  // namespace
}  // namespace gimbal
