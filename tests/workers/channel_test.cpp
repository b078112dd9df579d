// Lines with open files: each file arrives with its line, in order, whatever the pieces are; a side that
// takes none closes them.
#include "workers/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/golden.h"

namespace gimbal {
namespace {

class Channels : public testing::Test {
 protected:
  void open(bool takes_files) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    from_ = Channel(ends[0]), to_ = Channel(ends[1], takes_files);
  }
  int file_with(const std::string& text) {
    const std::string path = test::temporary_path("channel-file");
    std::ofstream(path) << text;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::filesystem::remove(path);
    return file;
  }
  // The next line; both sides move meanwhile.
  std::string receive() {
    std::string_view line;
    while (!to_.next(line)) {
      EXPECT_TRUE(from_.flush());
      if (!to_.fill()) return "(gone)";
    }
    return std::string(line);
  }
  static std::string contents(int file) {
    char text[100];
    const ssize_t n = pread(file, text, sizeof text, 0);
    close(file);
    return n < 0 ? "(none)" : std::string(text, size_t(n));
  }
  static size_t open_files() {
    size_t n = 0;
    for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator("/proc/self/fd")) n++;
    return n;
  }

  Channel from_, to_;
};

TEST_F(Channels, FilesArriveWithTheirLines) {
  open(true);
  const std::string large(300'000, 'x');  // more than a socket holds
  for (int i = 0; i < 10; i++) {
    from_.send(large);
    const int file = file_with("file " + std::to_string(i));
    from_.send("line " + std::to_string(i), file);
    close(file);  // the channel has a copy
    from_.send("without");
  }
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(receive(), large);
    EXPECT_EQ(receive(), "line " + std::to_string(i));
    EXPECT_EQ(contents(to_.take_file()), "file " + std::to_string(i));
    EXPECT_EQ(receive(), "without");
  }
  EXPECT_EQ(to_.take_file(), -1);
}

TEST_F(Channels, ASideThatTakesNoFilesClosesThem) {
  open(false);
  const size_t before = open_files();
  for (int i = 0; i < 5; i++) {
    const int file = file_with("x");
    from_.send("line", file);
    close(file);
    EXPECT_EQ(receive(), "line");
  }
  EXPECT_EQ(to_.take_file(), -1);
  EXPECT_EQ(open_files(), before);
}

// The sender is another process, and may be hostile: the room for one descriptor holds two.
TEST_F(Channels, ASecondFileOfAMessageIsClosed) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  to_ = Channel(ends[1], true);
  const int file = file_with("first");
  const size_t before = open_files();
  for (int i = 0; i < 5; i++) {
    const int two[] = {file, file};
    char line[] = "line\n", room[CMSG_SPACE(sizeof two)] = {};
    iovec part{line, 5};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = room, message.msg_controllen = sizeof room;
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof two);
    std::memcpy(CMSG_DATA(c), two, sizeof two);
    ASSERT_EQ(sendmsg(ends[0], &message, 0), 5);
    ASSERT_TRUE(to_.fill());
    std::string_view got;
    ASSERT_TRUE(to_.next(got));
    EXPECT_EQ(got, "line");
    EXPECT_EQ(contents(to_.take_file()), "first");
    EXPECT_EQ(to_.take_file(), -1);
  }
  EXPECT_EQ(open_files(), before);
  close(file), close(ends[0]);
}

TEST_F(Channels, FilesThatNoMessageTookAreClosed) {
  const size_t before = open_files();
  open(true);
  for (int i = 0; i < 200; i++) {
    const int file = file_with("x");
    from_.send("line", file);
    close(file);
    EXPECT_EQ(receive(), "line");
  }
  EXPECT_LT(open_files(), before + 100);
  const int unsent = file_with("x");
  from_.send("never sent", unsent);
  close(unsent);
  from_ = Channel(), to_ = Channel();
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace gimbal
