#include "store/page_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <vector>

#include "base/sockets.h"
#include "store/page_socket.h"

namespace gimbal {
namespace {

using page_socket::Act;
using page_socket::Reply;

Reply reply_of(const Status& ok, std::string& text) {
  if (ok) return {};
  text = ok.error().message.substr(0, page_socket::kMostText);
  return {uint32_t(ok.error().code) + 1, uint32_t(text.size()), 0};
}

constexpr size_t kMostKeys = 1 << 18;  // of Act::Used

// The increase of a total since the last report. A total that falls adds nothing.
uint64_t added(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }
double added(double now, double before) { return std::isfinite(now) && now > before ? now - before : 0; }

}  // namespace

PageServer::PageServer(int socket, std::shared_ptr<PageStore> store)
    : socket_(socket), store_(std::move(store)), folder_(static_cast<PageFolder&>(store_->place())) {
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    shutdown(socket_, SHUT_RDWR);  // the other side gets errors in place of pages
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PageServer::~PageServer() {
  shutdown(socket_, SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  close(socket_);
}

// At the end the other side gets errors in place of pages, and computes them.
void PageServer::run() {
  while (serve_one()) {}
  shutdown(socket_, SHUT_RDWR);
}

bool PageServer::serve_one() {
  page_socket::Request r;
  if (!receive_all(socket_, &r, sizeof r)) return false;
  if (r.bytes > page_socket::kMostContent) return false;
  std::string text;
  std::vector<std::byte> content;
  try {
    content.resize(r.act == Act::Has || r.act == Act::Open ? 0 : r.bytes);
  } catch (const std::bad_alloc&) { return false; }
  const bool follows = r.act == Act::Write || r.act == Act::Used || r.act == Act::Count;
  if (follows && !receive_all(socket_, content.data(), content.size())) return false;
  switch (r.act) {
    case Act::Has: return page_socket::send_reply(socket_, {0, 0, uint64_t(folder_.has(r.key))}, text, -1);
    case Act::Open: {
      const auto file = folder_.open_page(r.key);
      const Reply reply = reply_of(file ? Status(Done{}) : Status(file.error()), text);
      return page_socket::send_reply(socket_, reply, text, file ? file->descriptor() : -1);
    }
    case Act::Check: {
      const auto found = folder_.read(r.key, content);
      Reply reply = reply_of(found ? Status(Done{}) : Status(found.error()), text);
      if (found) reply.number = *found;
      return page_socket::send_reply(socket_, reply, text, -1);
    }
    case Act::Write: {
      const Reply reply = reply_of(folder_.write(r.key, content, r.microseconds), text);
      return page_socket::send_reply(socket_, reply, text, -1);
    }
    case Act::Used: {
      if (content.size() > kMostKeys * sizeof(PageKey)) return false;
      std::vector<PageKey> keys(content.size() / sizeof(PageKey));
      if (!keys.empty()) std::memcpy(keys.data(), content.data(), keys.size() * sizeof(PageKey));
      folder_.used(keys);
      return page_socket::send_reply(socket_, {}, text, -1);
    }
    case Act::Count: {
      PageStoreNumbers now;
      if (content.size() != sizeof now) return false;
      std::memcpy(&now, content.data(), sizeof now);
      PageStoreNumbers more;
      const auto add = [&](auto member) { more.*member = added(now.*member, counted_.*member); };
      for (const auto member : {&PageStoreNumbers::hits, &PageStoreNumbers::misses, &PageStoreNumbers::tokens,
                                &PageStoreNumbers::pages_read, &PageStoreNumbers::bytes_read,
                                &PageStoreNumbers::pages_written, &PageStoreNumbers::bytes_written,
                                &PageStoreNumbers::pages_damaged, &PageStoreNumbers::pages_dropped})
        add(member);
      add(&PageStoreNumbers::read_seconds), add(&PageStoreNumbers::saved_seconds);
      counted_ = now;
      store_->add(more);
      return page_socket::send_reply(socket_, {}, text, -1);
    }
  }
  return false;
}

}  // namespace gimbal
