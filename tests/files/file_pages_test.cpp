// Pages of a file that are read on request: the file's bytes, the memory that they take, and files that end
// before a wanted page.
#include "files/file_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/format.h"
#include "runtime/random.h"
#include "support/cli.h"

namespace gimbal {
namespace {

using test::contains;
using Range = FilePages::Range;

class FilePagesTest : public testing::Test {
 protected:
  const uint64_t page_ = FilePages::page_bytes();
  const std::string path_ = test::temporary_path("pages");
  std::string contents_;
  std::unique_ptr<FilePages> pages_;

  // Of so many bytes; the file may end within a page.
  void open(uint64_t bytes) {
    Random random(7);
    contents_.resize(size_t(bytes));
    for (char& c : contents_) c = char(random.next());
    ASSERT_TRUE(write_file(path_, contents_));
    auto file = InputFile::open(path_);
    ASSERT_TRUE(file);
    auto pages = FilePages::open(*file, path_);
    ASSERT_TRUE(pages) << pages.error().message;
    pages_ = std::move(*pages);
  }
  bool has(Range r) const {
    return std::memcmp(pages_->bytes().data() + r.begin, contents_.data() + r.begin,
                       size_t(r.end - r.begin)) == 0;
  }
  // What the system says is in memory.
  uint64_t resident() const {
    std::vector<unsigned char> in(size_t((contents_.size() + page_ - 1) / page_));
    auto* data = const_cast<std::byte*>(pages_->bytes().data());
    EXPECT_EQ(mincore(data, in.size() * size_t(page_), in.data()), 0);
    return uint64_t(std::count_if(in.begin(), in.end(), [](unsigned char c) { return c & 1; })) * page_;
  }
  Status hold(Range r) { return pages_->hold(std::array{r}); }
  void drop(Range r) { pages_->drop(std::array{r}); }
};

TEST_F(FilePagesTest, HoldTheBytesOfTheFileAndNothingElse) {
  open(20 * page_ + 100);
  EXPECT_EQ(resident(), 0u);
  const Range a{page_ / 2, 3 * page_ + 1}, b{3 * page_ + 64, 3 * page_ + 128},
      end{19 * page_, 20 * page_ + 100};
  ASSERT_TRUE(hold(a));
  EXPECT_TRUE(has(a));
  EXPECT_EQ(resident(), 4 * page_);
  EXPECT_EQ(pages_->held_bytes(), 4 * page_);
  EXPECT_EQ(FilePages::bytes_of(a), 4 * page_);
  ASSERT_TRUE(hold(b));  // on a page of a
  EXPECT_EQ(pages_->read_bytes(), 4 * page_);
  ASSERT_TRUE(hold(end));
  EXPECT_TRUE(has(end));
  EXPECT_EQ(resident(), 6 * page_);
  drop(a);
  EXPECT_TRUE(has(b));
  EXPECT_EQ(resident(), 3 * page_);
  drop(b);
  drop(end);
  EXPECT_EQ(resident(), 0u);
  EXPECT_EQ(pages_->held_bytes(), 0u);
  EXPECT_EQ(pages_->most_bytes(), 6 * page_);
  ASSERT_TRUE(hold(a));  // read again, not kept
  EXPECT_TRUE(has(a));
  EXPECT_EQ(pages_->read_bytes(), 4 * page_ + page_ + 100 + 4 * page_);
}

TEST_F(FilePagesTest, AnyOrderOfRangesThatSharePages) {
  open(64 * page_ + 1);
  Random random(3);
  std::vector<Range> held;
  for (int i = 0; i < 2000; i++) {
    if (!held.empty() && random.next() % 2) {
      const size_t which = random.next() % held.size();
      drop(held[which]);
      held.erase(held.begin() + long(which));
    } else {
      const uint64_t begin = random.next() % contents_.size();
      held.push_back({begin, std::min<uint64_t>(contents_.size(), begin + 1 + random.next() % (5 * page_))});
      ASSERT_TRUE(hold(held.back()));
    }
    std::set<uint64_t> pages;
    for (const Range& r : held) {
      ASSERT_TRUE(has(r)) << i;
      for (uint64_t p = r.begin / page_; p * page_ < r.end; p++) pages.insert(p);
    }
    ASSERT_EQ(pages_->held_bytes(), pages.size() * page_) << i;
    if (i % 50 == 0) { ASSERT_EQ(resident(), pages_->held_bytes()) << i; }
  }
}

TEST_F(FilePagesTest, OfATruncatedFileAreAnError) {
  open(10 * page_);
  const Range kept{0, page_}, lost{8 * page_, 9 * page_};
  ASSERT_TRUE(hold(kept));
  ASSERT_EQ(truncate(path_.c_str(), long(4 * page_ + 10)), 0);
  const std::array both{Range{2 * page_, 3 * page_}, lost};
  const auto refused = pages_->hold(both);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Failed);
  EXPECT_SAYS(refused.error().message, format("at offset {}", 8 * page_));
  EXPECT_SAYS(refused.error().message, format("had {} bytes when it was opened", 10 * page_));
  EXPECT_TRUE(has(kept));
  EXPECT_EQ(pages_->held_bytes(), page_) << "none of the refused ranges";
  EXPECT_EQ(resident(), page_);
  EXPECT_FALSE(hold({3 * page_, 5 * page_})) << "the file ends within its second page";
  EXPECT_EQ(resident(), page_);
  ASSERT_TRUE(hold({3 * page_, 4 * page_}));
  EXPECT_TRUE(has({3 * page_, 4 * page_}));
}

}  // namespace
}  // namespace gimbal
