#include "store/page_client.h"

#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "base/sockets.h"
#include "store/page_socket.h"

namespace gimbal {
namespace {

using page_socket::Act;
using page_socket::Request;

// `line`: with a mutex and a socket. `descriptor`: gets that of the reply.
template <class Line>
Result<uint64_t> ask(Line& line, const Request& r, Bytes more, int& descriptor) {
  const std::lock_guard lock(line.mutex);
  // The reply of a server that is gone says so.
  if (send_all(line.socket, &r, sizeof r)) send_all(line.socket, more.data(), more.size());
  return page_socket::receive_reply(line.socket, descriptor);
}

template <class Line>
Result<uint64_t> ask(Line& line, const Request& r, Bytes more = {}) {
  int descriptor = -1;
  auto reply = ask(line, r, more, descriptor);
  if (descriptor >= 0) close(descriptor);
  return reply;
}

}  // namespace

PageClient::PageClient(int reading, int writing) : reading_(reading), writing_(writing) {}

PageClient::~PageClient() { close(reading_.socket), close(writing_.socket); }

bool PageClient::has(const PageKey& key) const {
  const auto there = ask(reading_, {Act::Has, 0, key, 0, 0});
  return there && *there == 1;
}

Result<uint64_t> PageClient::read(const PageKey& key, std::span<std::byte> content) {
  int descriptor = -1;
  const auto opened = ask(reading_, {Act::Open, 0, key, 0, 0}, {}, descriptor);
  if (!opened) return opened.error();
  if (descriptor < 0) return Error{Code::Failed, "a page came without its file", ""};
  const auto file = InputFile::adopt(descriptor, format("page {}", name_of(key)));
  if (!file) return file.error();
  auto microseconds = read_page(*file, key, content);
  if (microseconds || microseconds.error().code != Code::Malformed) return microseconds;
  // The process with the folder checks it, too, and deletes it.
  if (const auto checked = ask(writing_, {Act::Check, 0, key, content.size(), 0}); !checked)
    return checked.error();
  return microseconds;
}

Status PageClient::write(const PageKey& key, Bytes content, uint64_t microseconds) {
  const auto done = ask(writing_, {Act::Write, 0, key, content.size(), microseconds}, content);
  return done ? Status(Done{}) : Status(done.error());
}

void PageClient::used(std::span<const PageKey> keys) {
  if (!keys.empty()) (void)ask(writing_, {Act::Used, 0, {}, keys.size_bytes(), 0}, std::as_bytes(keys));
}

void PageClient::count(const PageStoreNumbers& n) {
  (void)ask(writing_, {Act::Count, 0, {}, sizeof n, 0}, std::as_bytes(std::span(&n, 1)));
}

}  // namespace gimbal
