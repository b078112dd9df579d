// Receipts of answers: which ones stay in memory, who gets them, and the folder of those with certificates.
// Threads: a folder writes in one of its own.
#include "server/api/receipts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <latch>
#include <semaphore>

#include "base/file.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;
using api::CertificateFolder;
using api::Receipts;

TEST(Receipts, OfTheirOwnerAlone) {
  Receipts all;
  all.keep("id-1", "ann", "a receipt", false);
  EXPECT_EQ(all.find("id-1", "ann"), "a receipt");
  EXPECT_EQ(all.find("id-1", "bob"), "");
  EXPECT_EQ(all.find("id-2", "ann"), "");
}

TEST(Receipts, TheLastThousandStayInMemory) {
  Receipts all;
  for (int i = 0; i <= 1000; i++) all.keep(std::to_string(i), "ann", "receipt " + std::to_string(i), false);
  EXPECT_EQ(all.find("0", "ann"), "");
  EXPECT_EQ(all.find("1", "ann"), "receipt 1");
  EXPECT_EQ(all.find("1000", "ann"), "receipt 1000");
}

TEST(Receipts, TakeAtMost64MegabytesButTheLastOneStays) {
  constexpr size_t half = 32 << 20;
  Receipts all;
  all.keep("a", "ann", std::string(half, 'a'), false);
  all.keep("b", "ann", std::string(half, 'b'), false);
  EXPECT_EQ(all.find("a", "ann").size(), half);
  all.keep("c", "ann", "c", false);
  EXPECT_EQ(all.find("a", "ann"), "") << "one byte too many";
  EXPECT_EQ(all.find("b", "ann").size(), half);
  all.keep("d", "ann", std::string(half - 1, 'd'), false);
  EXPECT_EQ(all.find("b", "ann").size(), half) << "the first one's bytes are free again";
  all.keep("e", "ann", std::string(2 * half + 1, 'e'), false);
  EXPECT_EQ(all.find("d", "ann"), "");
  EXPECT_EQ(all.find("e", "ann").size(), 2 * half + 1);
}

class CertificatesInAFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = temporary_path("receipts");
    fs::remove_all(folder_);
  }
  std::unique_ptr<CertificateFolder> open(std::function<void(const Error&)> failed = {}) {
    auto made = CertificateFolder::open(
        folder_, failed ? std::move(failed) : [](const Error& e) { ADD_FAILURE() << e.message; });
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  static unsigned mode_of(const std::string& path) {
    struct stat s {};
    EXPECT_EQ(stat(path.c_str(), &s), 0) << path;
    return s.st_mode & 07777;
  }
  std::string folder_;
};

TEST_F(CertificatesInAFolder, OutliveTheServer) {
  {
    Receipts all;
    all.keep_in(open());
    all.keep("id-1", "ann", "with a certificate", true);
    all.keep("id-2", "ann", "without", false);
  }
  EXPECT_EQ(*read_file(folder_ + "/ann/id-1.json"), "with a certificate");
  EXPECT_FALSE(fs::exists(folder_ + "/ann/id-2.json"));
  Receipts later;
  later.keep_in(open());
  EXPECT_EQ(later.find("id-1", "ann"), "with a certificate");
  EXPECT_EQ(later.find("id-1", "bob"), "");
  EXPECT_EQ(later.find("id-2", "ann"), "");
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().filename(), "ann") << "the trial is gone";
}

// Prompts and answers are in them.
TEST_F(CertificatesInAFolder, AFolderThatIsMadeIsItsUsersAlone) {
  const mode_t mask = umask(0);
  open()->keep("ann", "id", "text");
  umask(mask);
  EXPECT_EQ(mode_of(folder_), 0700u);
  EXPECT_EQ(mode_of(folder_ + "/ann"), 0700u);
  fs::remove_all(folder_);
  umask(0777);
  auto made = CertificateFolder::open(folder_, [](const Error&) {});
  umask(mask);
  EXPECT_TRUE(made);
  EXPECT_EQ(mode_of(folder_), 0700u) << "a mask takes nothing from its user";
}

// The owner of the folder may let a group read it.
TEST_F(CertificatesInAFolder, AFolderThatIsThereKeepsItsMode) {
  fs::create_directories(folder_ + "/ann");
  ASSERT_EQ(chmod(folder_.c_str(), 0750), 0);
  ASSERT_EQ(chmod((folder_ + "/ann").c_str(), 0770), 0);
  open()->keep("ann", "id", "text");
  EXPECT_EQ(mode_of(folder_), 0750u);
  EXPECT_EQ(mode_of(folder_ + "/ann"), 0770u);
  EXPECT_EQ(*read_file(folder_ + "/ann/id.json"), "text");
}

// Ids come from clients.
TEST_F(CertificatesInAFolder, AnIdIsAName) {
  const std::string longest(100, 'x');
  const auto folder = open();
  ASSERT_TRUE(write_file(folder_ + "/outside.json", "another file"));
  fs::create_directories(folder_ + "/ann/sub");
  for (const std::string& name : {std::string("sub/x"), std::string("a.b"), longest + "x", longest})
    ASSERT_TRUE(write_file(folder_ + "/ann/" + name + ".json", "there"));
  EXPECT_EQ(folder->find("ann", longest), "there");
  for (const std::string& id :
       {std::string("../outside"), std::string("sub/x"), std::string("a.b"), longest + "x", std::string()})
    EXPECT_EQ(folder->find("ann", id), "") << id;
  EXPECT_EQ(folder->find("ann/..", "outside"), "");
  EXPECT_EQ(folder->find("", "outside"), "");
  ASSERT_TRUE(write_file(folder_ + "/ann/chatcmpl-A_9.json", "an answer"));
  EXPECT_EQ(folder->find("ann", "chatcmpl-A_9"), "an answer");
}

TEST_F(CertificatesInAFolder, ThatCannotBeMadeIsAnError) {
  ASSERT_TRUE(write_file(folder_, "a file"));
  for (const std::string& path : {folder_, folder_ + "/below"}) {
    const auto made = CertificateFolder::open(path, [](const Error&) {});
    ASSERT_FALSE(made) << path;
    EXPECT_EQ(made.error().code, Code::Failed);
    EXPECT_NE(made.error().message.find(folder_), std::string::npos) << made.error().message;
  }
  fs::remove(folder_);
}

TEST_F(CertificatesInAFolder, AReceiptThatCannotBeWrittenIsReportedAndTheNextIsWritten) {
  std::vector<std::string> reported;
  {
    const auto folder = open([&](const Error& e) { reported.push_back(e.message); });
    ASSERT_TRUE(write_file(folder_ + "/bob", "a file where a folder is wanted"));
    folder->keep("bob", "id", "lost");
    folder->keep("ann", "id", "kept");
  }
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_NE(reported[0].find(folder_ + "/bob"), std::string::npos) << reported[0];
  EXPECT_EQ(*read_file(folder_ + "/ann/id.json"), "kept");
}

TEST_F(CertificatesInAFolder, ADiskThatIsTooSlowLosesReceiptsAndNoMemory) {
  std::vector<std::string> reported;
  std::latch is_writing(1);
  std::binary_semaphore go_on(0);
  {
    const auto folder = open([&](const Error& e) {
      if (e.message.find("too slow") != e.message.npos) return reported.push_back(e.message);
      is_writing.count_down();
      go_on.acquire();
    });
    ASSERT_TRUE(write_file(folder_ + "/bob", "a file where a folder is wanted"));
    folder->keep("bob", "slow", "1");  // whose report takes long
    is_writing.wait();
    folder->keep("ann", "large", std::string((64 << 20) - 1, 'a'));
    folder->keep("ann", "lost", "2");
    EXPECT_EQ(reported.size(), 1u) << "64 MB and a byte";
    go_on.release();
    while (!fs::exists(folder_ + "/ann/large.json")) std::this_thread::yield();
    while (folder->keep("ann", "later", "3"), folder->find("ann", "later").empty()) std::this_thread::yield();
  }
  EXPECT_NE(reported.at(0).find("lost is not stored"), std::string::npos) << reported[0];
  EXPECT_FALSE(fs::exists(folder_ + "/ann/lost.json"));
  EXPECT_EQ(fs::file_size(folder_ + "/ann/large.json"), (64u << 20) - 1);
}

}  // namespace
}  // namespace gimbal::test
