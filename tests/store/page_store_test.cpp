// The writing thread: it writes queued pages, counts those without room, and notes failures.
#include "store/page_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/page_folder.h"
#include "store/page_keys.h"
#include "support/golden.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

class StoreOfPages : public testing::Test {
 protected:
  StoreOfPages() { fs::remove_all(path_); }
  ~StoreOfPages() override { fs::remove_all(path_); }

  std::unique_ptr<PageStore> open(uint64_t most_bytes = 1 << 30, uint64_t most_waiting = 1 << 20) {
    auto folder = PageFolder::open({path_, most_bytes, false, {}});
    EXPECT_TRUE(folder);
    auto store = PageStore::create(
        std::move(*folder),
        [this](const std::string& s) {
          const std::lock_guard lock(mutex_);
          notes_.push_back(s);
        },
        most_waiting);
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  static bool put(PageStore& s, int n, size_t size = 100) {
    auto room = s.room_for(size);
    if (room.empty()) return false;
    std::fill(room.begin(), room.end(), std::byte(n));
    s.write(test::page_key(n), std::move(room), 1000);
    return true;
  }

  const std::string path_ = test::temporary_path("store-of-pages");
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

TEST_F(StoreOfPages, WritesWhatIsQueuedBeforeItEnds) {
  {
    auto s = open();
    for (int n = 0; n < 50; n++) EXPECT_TRUE(put(*s, n));
  }
  auto s = open();
  std::vector<std::byte> content(100);
  for (int n = 0; n < 50; n++) {
    ASSERT_TRUE(s->read(test::page_key(n), content)) << n;
    EXPECT_EQ(content[99], std::byte(n));
  }
  EXPECT_EQ(s->numbers().pages_read, 50u);
  EXPECT_EQ(s->numbers().bytes_read, 5000u);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(StoreOfPages, ARoomThatIsTooLargeIsCounted) {
  auto s = open(1 << 30, 1000);
  EXPECT_FALSE(put(*s, 1, 1001));
  auto room = s->room_for(1000);
  EXPECT_FALSE(room.empty());
  EXPECT_FALSE(put(*s, 2, 1));
  s->give_back(std::move(room));
  EXPECT_TRUE(put(*s, 2, 1));
  s->wait();
  EXPECT_TRUE(put(*s, 3, 1000)) << "a written page frees its room";
  s->wait();
  EXPECT_EQ(s->numbers().pages_dropped, 3u);
  EXPECT_EQ(s->numbers().pages_written, 2u);
}

TEST_F(StoreOfPages, AFailureIsNotedAndPausesWriting) {
  auto s = open(3 * 4096);
  EXPECT_TRUE(put(*s, 1, 20000));
  s->wait();
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("is not written"), std::string::npos) << notes_[0];
  int refused = 0;
  while (!put(*s, 2)) ASSERT_LE(++refused, 64);
  EXPECT_EQ(refused, 64);
  s->wait();
  EXPECT_TRUE(s->has(test::page_key(2)));
}

TEST_F(StoreOfPages, ADamagedPageIsNoted) {
  auto s = open();
  put(*s, 1);
  s->wait();
  for (const auto& e : fs::recursive_directory_iterator(path_))
    if (e.is_regular_file()) std::ofstream(e.path(), std::ios::app) << "x";
  std::vector<std::byte> content(100);
  EXPECT_EQ(s->read(test::page_key(1), content).error().code, Code::Malformed);
  EXPECT_EQ(s->read(test::page_key(1), content).error().code, Code::NotFound);
  EXPECT_EQ(s->numbers().pages_damaged, 1u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("deleted a damaged page"), std::string::npos) << notes_[0];
}

}  // namespace
}  // namespace gimbal
