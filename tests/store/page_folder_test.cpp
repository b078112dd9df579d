// Pages in a folder: whole or absent, checked, bounded, private; whatever happens to their files.
#include "store/page_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/send_signal.h"
#include "support/golden.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMany = uint64_t(1) << 30;
constexpr size_t kSize = 5000;  // of a page: two blocks with its head

PageKey key_of(int n) {
  PageKey k{};
  std::memcpy(k.data(), &n, sizeof n);
  return k;
}

std::vector<std::byte> content_of(int n, size_t size = kSize) {
  std::vector<std::byte> all(size);
  for (size_t i = 0; i < size; i++) all[i] = std::byte(uint8_t(i * 31 + size_t(n) * 7));
  return all;
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Pages : public testing::Test {
 protected:
  Pages() { fs::remove_all(path_); }
  ~Pages() override { fs::remove_all(path_); }

  std::unique_ptr<PageFolder> open(uint64_t most = kMany, bool shared = false,
                                   std::function<int64_t()> clock = {}) {
    auto folder = PageFolder::open({path_, most, shared, std::move(clock)});
    EXPECT_TRUE(folder) << folder.error().message;
    return folder ? std::move(*folder) : nullptr;
  }
  std::string refusal(bool shared = false) {
    auto folder = PageFolder::open({path_, kMany, shared, {}});
    return folder ? "" : folder.error().message;
  }
  static void write(PageFolder& f, int n) {
    const Status ok = f.write(key_of(n), content_of(n), uint64_t(n));
    EXPECT_TRUE(ok) << ok.error().message;
  }
  // "" for a page with the right content, else the reader's error.
  static std::string read(PageFolder& f, int n) {
    std::vector<std::byte> content(kSize);
    const auto r = f.read(key_of(n), content);
    if (!r) return r.error().message;
    EXPECT_EQ(*r, uint64_t(n));
    return content == content_of(n) ? "" : "other content";
  }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& e : fs::recursive_directory_iterator(path_))
      if (e.is_regular_file()) all.push_back(e.path().string());
    return all;
  }
  uint64_t bytes_of_files() const {
    uint64_t sum = 0;
    for (const std::string& f : files()) sum += (fs::file_size(f) + 4095) / 4096 * 4096;
    return sum;
  }

  const std::string path_ = test::temporary_path("pages");
};

TEST_F(Pages, AreReadAsTheyWereWritten) {
  auto a = open();
  EXPECT_FALSE(a->has(key_of(1)));
  std::vector<std::byte> content(kSize);
  EXPECT_EQ(a->read(key_of(1), content).error().code, Code::NotFound);
  write(*a, 1), write(*a, 2);
  auto b = open();  // another process would open it so
  EXPECT_TRUE(b->has(key_of(1)));
  EXPECT_EQ(read(*b, 1), "");
  EXPECT_EQ(read(*b, 2), "");
  EXPECT_EQ(b->bytes(), bytes_of_files());
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(Pages, FolderAndFilesAreForTheirOwnerAlone) {
  const mode_t before = umask(0);
  write(*open(), 1);
  umask(before);
  struct stat st {};
  ASSERT_EQ(stat(path_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(files().at(0).c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(Pages, AFolderThatOthersCanEnterNeedsASalt) {
  fs::create_directory(path_);
  ASSERT_EQ(chmod(path_.c_str(), 0770), 0);
  EXPECT_NE(refusal().find("mode 0770, expected 0700"), std::string::npos) << refusal();
  EXPECT_EQ(refusal(true), "");
  write(*open(kMany, true), 1);
  struct stat st {};
  ASSERT_EQ(stat(files().at(0).c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0660u) << "the folder's users read it";
  ASSERT_EQ(chmod(path_.c_str(), 0700), 0);
  EXPECT_EQ(refusal(), "");
}

TEST_F(Pages, AFolderOfAnotherUserIsRefused) {
  if (geteuid() == 0) {
    fs::create_directory(path_);
    ASSERT_EQ(chmod(path_.c_str(), 0700), 0);
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    EXPECT_NE(refusal().find("belongs to user 65534"), std::string::npos) << refusal();
  } else {
    const auto r = PageFolder::open({"/usr", kMany, false, {}});
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message.find("belongs to user 0"), std::string::npos) << r.error().message;
  }
}

TEST_F(Pages, AFileIsNoFolder) {
  std::ofstream(path_) << "x";
  EXPECT_NE(refusal().find("is no folder"), std::string::npos) << refusal();
}

// Every damage is found, and the page is gone afterwards.
TEST_F(Pages, ADamagedPageIsDeletedAndReported) {
  auto f = open();
  struct Damage {
    const char* name;
    std::function<void(std::string& bytes)> make;
    const char* says;
  };
  const Damage all[] = {
      {"cut", [](std::string& b) { b.resize(b.size() - 1); }, "expected 5064"},
      {"empty", [](std::string& b) { b.clear(); }, "it has 0 bytes"},
      {"longer", [](std::string& b) { b += 'x'; }, "it has 5065 bytes"},
      {"a bit of the content", [](std::string& b) { b[4000] ^= 1; }, "checksum"},
      {"the last bit", [](std::string& b) { b.back() ^= 0x80; }, "checksum"},
      {"a bit of the checksum", [](std::string& b) { b[40] ^= 4; }, "checksum"},
      {"the time", [](std::string& b) { b[24] ^= 1; }, "checksum"},
      {"the magic", [](std::string& b) { b[0] = 'G'; }, "does not begin as a page"},
      {"the size", [](std::string& b) { b[16] ^= 1; }, "expected 5000"},
  };
  for (const Damage& d : all) {
    SCOPED_TRACE(d.name);
    write(*f, 1);
    const std::string path = files().at(0);
    std::string bytes = contents_of(path);
    d.make(bytes);
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string says = read(*f, 1);
    EXPECT_NE(says.find(d.says), std::string::npos) << says;
    EXPECT_FALSE(f->has(key_of(1)));
    EXPECT_TRUE(files().empty());
  }
  write(*f, 1);
  EXPECT_EQ(read(*f, 1), "");
}

// A page is bound to its key: one that was copied to another name is a forgery.
TEST_F(Pages, APageUnderAnotherNameIsAForgery) {
  auto f = open();
  write(*f, 1), write(*f, 2);
  const std::string one = path_ + "/" + name_of(key_of(1)).substr(0, 2) + "/" + name_of(key_of(1));
  const std::string two = path_ + "/" + name_of(key_of(2)).substr(0, 2) + "/" + name_of(key_of(2));
  fs::copy_file(one, two, fs::copy_options::overwrite_existing);
  EXPECT_NE(read(*f, 2).find("checksum"), std::string::npos);
  EXPECT_FALSE(f->has(key_of(2)));
  EXPECT_EQ(read(*f, 1), "");
}

TEST_F(Pages, TheLeastRecentlyUsedGoFirst) {
  auto f = open(20 * 8192);
  for (int n = 0; n < 20; n++) write(*f, n);
  EXPECT_EQ(bytes_of_files(), 20u * 8192);
  const PageKey used[] = {key_of(0), key_of(3)};
  f->used(used);
  write(*f, 20);
  EXPECT_LE(bytes_of_files(), 20u * 8192);
  EXPECT_EQ(f->bytes(), bytes_of_files());
  EXPECT_GT(f->evicted(), 0u);
  for (int n : {0, 3, 18, 19, 20}) EXPECT_TRUE(f->has(key_of(n))) << n;
  for (int n : {1, 2}) EXPECT_FALSE(f->has(key_of(n))) << n;
  for (int n = 100; n < 200; n++) {
    write(*f, n);
    ASSERT_LE(bytes_of_files(), 20u * 8192);
  }
  const auto large = content_of(1, 20 * 8192);
  EXPECT_EQ(f->write(key_of(500), large, 1).error().code, Code::OutOfMemory);
}

// A text is read up to its first missing page, so its last page goes first.
TEST_F(Pages, TheLastPageOfATextGoesFirst) {
  auto f = open(8 * 8192);
  std::vector<PageKey> text;
  for (int n = 0; n < 8; n++) write(*f, n), text.push_back(key_of(n));
  f->used(text);
  write(*f, 8);
  EXPECT_FALSE(f->has(key_of(7)));
  for (int n : {0, 6, 8}) EXPECT_TRUE(f->has(key_of(n))) << n;
}

TEST_F(Pages, AClockThatJumpsDoesNotChangeTheOrder) {
  int64_t time = 2000000000000000000;
  auto f = open(20 * 8192, false, [&] { return time; });
  for (int n = 0; n < 10; n++) write(*f, n), time += 1000;
  time = 1000000000000000000;  // decades back
  for (int n = 10; n < 20; n++) write(*f, n), time -= 1000;
  // Another process begins while the clock is wrong.
  auto g = open(20 * 8192, false, [&] { return time; });
  const PageKey used[] = {key_of(1)};
  g->used(used);
  write(*g, 20);
  EXPECT_FALSE(g->has(key_of(0)));
  for (int n : {1, 10, 19, 20}) EXPECT_TRUE(g->has(key_of(n))) << n;
}

TEST_F(Pages, TwoWritersShareAFolder) {
  auto a = open(), b = open();
  auto run = [](PageFolder& f) {
    for (int n = 0; n < 60; n++) write(f, n);
  };
  std::thread other([&] { run(*b); });
  run(*a);
  other.join();
  EXPECT_EQ(files().size(), 60u) << "no draft is left";
  for (int n = 0; n < 60; n++) EXPECT_EQ(read(*a, n), "") << n;
}

// The folder stays within its bound when two processes fill it.
TEST_F(Pages, TwoWritersKeepTheBound) {
  const uint64_t most = 64 * 8192;
  auto a = open(most), b = open(most);
  for (int n = 0; n < 200; n++) write(n % 2 ? *a : *b, n);
  EXPECT_LE(bytes_of_files(), most + most / 32) << "each may be a 64th behind";
}

TEST_F(Pages, AProcessKilledWhileItWritesLeavesWholePages) {
  for (int round = 0; round < 10; round++) {
    open();
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto f = PageFolder::open({path_, kMany, false, {}});
      for (int n = round * 1000; f; n++) {
        const auto content = content_of(n);
        (void)!(*f)->write(key_of(n), content, uint64_t(n));
        if (n % 1000 == round) (void)!::write(ready[1], "x", 1);
      }
      _exit(1);
    }
    char x;
    ASSERT_EQ(::read(ready[0], &x, 1), 1);
    EXPECT_TRUE(send_signal(child, SIGKILL));
    waitpid(child, nullptr, 0);
    close(ready[0]), close(ready[1]);
    auto f = open();
    int there = 0;
    for (int n = round * 1000; n < round * 1000 + 1000; n++)
      if (f->has(key_of(n))) {
        there++;
        ASSERT_EQ(read(*f, n), "") << n;
      }
    EXPECT_GT(there, 0);
  }
}

// Of file systems without unnamed files: a draft has a name with its process's number.
TEST_F(Pages, LostDraftsAreRemoved) {
  auto f = open();
  write(*f, 1);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const std::string page = files().at(0);
  const std::string lost = page + "." + std::to_string(child) + "-0";
  std::ofstream(lost) << "half";
  std::ofstream(page + "." + std::to_string(getpid()) + "-0") << "in progress";
  std::ofstream(fs::path(page).parent_path().string() + "/notes.txt") << "the user's";
  open();
  EXPECT_EQ(files().size(), 3u);
  EXPECT_FALSE(fs::exists(lost));
}

// A file takes whole blocks of 4,096 bytes; 64 of them are its head.
TEST_F(Pages, AreCountedInWholeBlocks) {
  const auto put = [&](PageFolder& f, int n, size_t size) {
    return f.write(key_of(n), content_of(n, size), 1);
  };
  auto f = open();
  EXPECT_EQ(f->bytes(), 0u);
  EXPECT_TRUE(put(*f, 1, 4096 - 64));
  EXPECT_EQ(f->bytes(), 4096u);
  EXPECT_TRUE(put(*f, 2, 4096 - 63));
  EXPECT_EQ(f->bytes(), 3u * 4096);
  EXPECT_TRUE(put(*f, 2, 4096 - 63)) << "it is there";
  EXPECT_EQ(f->bytes(), 3u * 4096);
  EXPECT_EQ(open()->bytes(), 3u * 4096);
  fs::remove_all(path_);
  auto small = open(4096);
  EXPECT_EQ(put(*small, 1, 4096 - 63).error().code, Code::OutOfMemory);
  EXPECT_TRUE(put(*small, 2, 4096 - 64));
  EXPECT_EQ(small->evicted(), 0u);
  EXPECT_TRUE(put(*small, 3, 1));
  EXPECT_EQ(small->evicted(), 1u);
  EXPECT_EQ(small->bytes(), 4096u);
}

// An eighth of the bound goes at once, or as much as the new page needs.
TEST_F(Pages, AnEighthGoesAtOnce) {
  for (const auto& [pages, gone] : {std::pair{16, 2}, {24, 3}, {4, 1}}) {
    fs::remove_all(path_);
    auto f = open(uint64_t(pages) * 8192);
    for (int n = 0; n < pages; n++) write(*f, n);
    EXPECT_EQ(f->evicted(), 0u) << "the bound itself is allowed";
    write(*f, pages);
    EXPECT_EQ(f->evicted(), uint64_t(gone)) << pages;
    EXPECT_EQ(f->bytes(), uint64_t(pages + 1 - gone) * 8192);
    EXPECT_FALSE(f->has(key_of(gone - 1)));
    EXPECT_TRUE(f->has(key_of(gone)));
  }
}

// Names that only resemble a lost draft are the user's.
TEST_F(Pages, OtherNamesStay) {
  write(*open(), 1);
  const std::string page = files().at(0), folder = fs::path(page).parent_path().string();
  const std::string name = fs::path(page).filename().string();
  const std::string others[] = {name + ".x-0",
                                name + ".-0",
                                name + ".1234567890-0",
                                name + "_999999999-0",
                                name.substr(1) + ".1-0",
                                name + "0",
                                "G" + name.substr(1) + ".999999999-0",
                                name + ".99999 9-0"};
  for (const std::string& other : others) std::ofstream(folder + "/" + other) << "x";
  fs::create_directory(path_ + "/zz"), fs::create_directory(path_ + "/abc");
  const std::string elsewhere[] = {path_ + "/zz/" + name, path_ + "/abc/" + name};
  for (const std::string& file : elsewhere) std::ofstream(file) << "x";
  auto f = open();
  EXPECT_EQ(f->bytes(), 2u * 4096) << "the page alone";
  for (const std::string& other : others) EXPECT_TRUE(fs::exists(folder + "/" + other)) << other;
  EXPECT_EQ(files().size(), 1 + std::size(others) + std::size(elsewhere));
}

// In a process of its own, which may write files of 4,096 bytes at most: the disk is full.
TEST_F(Pages, AFullDiskIsAnError) {
  open();
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &most);
    auto f = PageFolder::open({path_, kMany, false, {}});
    const auto content = content_of(1), small = content_of(2, 1000);
    const Status ok = (*f)->write(key_of(1), content, 1);
    const bool refused = !ok && ok.error().code == Code::Failed && !(*f)->has(key_of(1));
    _exit(refused && (*f)->write(key_of(2), small, 1) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files().size(), 1u) << "nothing remains of the page that did not fit";
}

TEST_F(Pages, AReadOnlyFolderIsRead) {
  write(*open(), 1);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0) {  // to which no folder is read-only
      for (const auto& e : fs::recursive_directory_iterator(path_))
        (void)!chown(e.path().c_str(), 65534, 65534);
      (void)!chown(path_.c_str(), 65534, 65534);
      if (chmod(fs::path(path_).parent_path().c_str(), 0711) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
        _exit(2);
    }
    std::error_code e;
    for (const auto& one : fs::directory_iterator(path_, e)) chmod(one.path().c_str(), 0500);
    chmod(path_.c_str(), 0500);
    auto f = PageFolder::open({path_, kMany, false, {}});
    if (!f) _exit(3);
    if (!read(**f, 1).empty()) _exit(4);
    const auto content = content_of(2);
    const Status ok = (*f)->write(key_of(2), content, 1);
    _exit(ok || ok.error().message.find("annot") == std::string::npos ? 5 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  chmod(path_.c_str(), 0700);
  for (const auto& e : fs::directory_iterator(path_)) chmod(e.path().c_str(), 0700);
}

}  // namespace
}  // namespace gimbal
