// Pages over a socket, for a process that opens no files: what the client reads and writes is what the folder
// has; the server survives any bytes, and the client any server.
// Threads: those of the servers and of the stores.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "store/page_client.h"
#include "store/page_keys.h"
#include "store/page_server.h"
#include "store/page_socket.h"
#include "support/golden.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

class PageSockets : public testing::Test {
 protected:
  PageSockets() {
    fs::remove_all(path_);
    auto folder = PageFolder::open({path_, 1 << 20, false, {}});
    EXPECT_TRUE(folder);
    auto store = PageStore::create(std::move(*folder), [](const std::string&) {});
    EXPECT_TRUE(store);
    store_ = std::move(*store);
  }
  ~PageSockets() override {
    servers_.clear();
    store_.reset();
    fs::remove_all(path_);
  }
  // The other end of a new server.
  int serve() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    servers_.push_back(std::make_unique<PageServer>(ends[0], store_));
    return ends[1];
  }
  std::unique_ptr<PageClient> client() {
    const int reading = serve();
    return std::make_unique<PageClient>(reading, serve());
  }
  std::string file_of(const PageKey& key) const {
    const std::string name = name_of(key);
    return path_ + "/" + name.substr(0, 2) + "/" + name;
  }

  const std::string path_ = test::temporary_path("page-sockets");
  std::shared_ptr<PageStore> store_;
  std::vector<std::unique_ptr<PageServer>> servers_;
};

std::vector<std::byte> page_of(int n, size_t bytes = 5000) {
  return std::vector<std::byte>(bytes, std::byte(n));
}

TEST_F(PageSockets, AClientReadsAndWritesTheFolder) {
  const auto c = client();
  for (int n = 0; n < 5; n++) {
    EXPECT_FALSE(c->has(test::page_key(n)));
    EXPECT_TRUE(c->write(test::page_key(n), page_of(n), uint64_t(n)));
    EXPECT_TRUE(c->has(test::page_key(n)));
  }
  for (int n = 0; n < 5; n++) {
    std::vector<std::byte> found(5000);
    const auto read = c->read(test::page_key(n), found);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, uint64_t(n));
    EXPECT_EQ(found, page_of(n));
    EXPECT_TRUE(store_->place().has(test::page_key(n))) << "it is the folder's";
  }
  std::vector<std::byte> found(5000);
  const auto none = c->read(test::page_key(9), found);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::NotFound);
  const auto large = c->write(test::page_key(9), page_of(9, 2 << 20), 0);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::OutOfMemory) << "the folder's bound counts";
}

TEST_F(PageSockets, ADamagedPageIsDeletedByTheFoldersOwner) {
  const auto c = client();
  ASSERT_TRUE(c->write(test::page_key(1), page_of(1), 0));
  ASSERT_TRUE(c->write(test::page_key(2), page_of(2), 0));
  fs::resize_file(file_of(test::page_key(1)), 100);
  std::vector<std::byte> found(5000);
  const auto read = c->read(test::page_key(1), found);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::Malformed);
  EXPECT_FALSE(fs::exists(file_of(test::page_key(1))));
  EXPECT_TRUE(c->read(test::page_key(2), found));
}

TEST_F(PageSockets, UsedPagesOutliveOthers) {
  const auto c = client();
  for (int n = 0; n < 20; n++) ASSERT_TRUE(c->write(test::page_key(n), page_of(n, 40000), 0));
  const std::vector<PageKey> used = {test::page_key(0), test::page_key(1)};
  c->used(used);
  for (int n = 20; n < 30; n++) ASSERT_TRUE(c->write(test::page_key(n), page_of(n, 40000), 0));
  EXPECT_TRUE(c->has(test::page_key(0)) && c->has(test::page_key(1)));
  EXPECT_FALSE(c->has(test::page_key(2)));
}

// Of processes that end, too: a total never falls.
TEST_F(PageSockets, NumbersOfAllClientsAreAdded) {
  for (int process = 1; process <= 2; process++) {
    auto store = PageStore::create(client(), [](const std::string&) {});
    ASSERT_TRUE(store);
    for (int n = 0; n < 3; n++) {
      auto room = (*store)->room_for(1000);
      ASSERT_EQ(room.size(), 1000u);
      (*store)->write(test::page_key(100 * process + n), std::move(room), 7);
    }
    (*store)->count_text(64, 0.5, 2.0);
    (*store)->count_text(0, 0.25, 0);
    (*store)->wait();
    store->reset();  // with the last numbers
    const PageStoreNumbers n = store_->numbers();
    EXPECT_EQ(n.pages_written, 3u * uint64_t(process));
    EXPECT_EQ(n.bytes_written, 3000u * uint64_t(process));
    EXPECT_EQ(n.hits, uint64_t(process));
    EXPECT_EQ(n.misses, uint64_t(process));
    EXPECT_EQ(n.tokens, 64u * uint64_t(process));
    EXPECT_DOUBLE_EQ(n.saved_seconds, 1.5 * process);
    EXPECT_GT(n.bytes, 0u) << "the folder's own";
  }
}

TEST_F(PageSockets, WithoutAServerPagesAreNotThere) {
  const auto c = client();
  ASSERT_TRUE(c->write(test::page_key(1), page_of(1), 0));
  servers_.clear();
  EXPECT_FALSE(c->has(test::page_key(1)));
  std::vector<std::byte> found(5000);
  EXPECT_FALSE(c->read(test::page_key(1), found));
  EXPECT_FALSE(c->write(test::page_key(2), page_of(2), 0));
  c->used(std::vector<PageKey>{test::page_key(1)});
  c->count({});
}

// Whatever bytes come, the server ends this connection alone.
TEST_F(PageSockets, HostileBytesEndTheirConnection) {
  using page_socket::Act;
  const auto c = client();
  ASSERT_TRUE(c->write(test::page_key(1), page_of(1), 0));
  std::mt19937 random(7);
  for (int round = 0; round < 200; round++) {
    const int socket = serve();
    page_socket::Request r{Act(random() % 9), 0, test::page_key(1),
                           uint64_t(1) << (random() % (round % 16 ? 16 : 64)), 1};
    std::string bytes(reinterpret_cast<const char*>(&r), sizeof r);
    if (round % 4 == 0)
      for (char& b : bytes) b = char(random());
    bytes += std::string(random() % 300, char(random()));
    EXPECT_EQ(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
    shutdown(socket, SHUT_WR);
    char replies[4096];
    while (recv(socket, replies, sizeof replies, 0) > 0) {}
    close(socket);
    servers_.pop_back();
  }
  for (const auto& e : fs::recursive_directory_iterator(path_)) EXPECT_FALSE(e.is_symlink());
}

// And so does the client with a server that sends nonsense.
TEST_F(PageSockets, AWrongReplyIsAnError) {
  for (const page_socket::Reply wrong : {page_socket::Reply{99, 0, 0}, {1, 1 << 30, 0}, {0, 0, 1}}) {
    int ends[2], other[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    PageClient c(ends[0], other[0]);
    EXPECT_EQ(write(ends[1], &wrong, sizeof wrong), ssize_t(sizeof wrong));
    shutdown(ends[1], SHUT_WR), close(other[1]);
    std::vector<std::byte> found(10);
    EXPECT_FALSE(c.read(test::page_key(1), found)) << "no file came along";
    close(ends[1]);
  }
}

// The longest message of an error arrives; a longer one is a wrong reply, and takes no memory.
TEST_F(PageSockets, AnErrorsMessageIsBounded) {
  for (const uint32_t more : {0u, 1u}) {
    int ends[2], descriptor = -1;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const std::string text(page_socket::kMostText + more, 'x');
    ASSERT_TRUE(
        page_socket::send_reply(ends[1], {uint32_t(Code::NotFound) + 1, uint32_t(text.size()), 0}, text, -1));
    const auto reply = page_socket::receive_reply(ends[0], descriptor);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, more ? Code::Failed : Code::NotFound);
    EXPECT_EQ(reply.error().message == text, more == 0);
    close(ends[0]), close(ends[1]);
  }
}

}  // namespace
}  // namespace gimbal
