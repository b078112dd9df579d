// The protocol between a process in a sandbox (page_client.h) and the process that has the folder of pages
// (page_server.h): a request on a socket, and its reply.
#pragma once
#include <string>

#include "store/page_place.h"

namespace gimbal::page_socket {

enum class Act : uint32_t {
  Has = 1,  // reply: the number is 1 or 0
  Open,     // reply: with the file's descriptor, open for reading
  Check,    // the page seems damaged: `bytes` were expected. Reply: as PageFolder::read()
  Write,    // `bytes` of content follow
  Used,     // `bytes` of keys follow
  Count,    // PageStoreNumbers follow
};

struct Request {
  Act act = Act::Has;
  uint32_t unused = 0;
  PageKey key{};
  uint64_t bytes = 0;  // behind the request; of Check: of the page
  uint64_t microseconds = 0;
};
static_assert(sizeof(Request) == 56);

struct Reply {
  uint32_t failed = 0;  // 0: no; else 1 + the Code of the error
  uint32_t text = 0;    // bytes of the error's message, which follow
  uint64_t number = 0;
};
static_assert(sizeof(Reply) == 16);

constexpr uint64_t kMostContent = uint64_t(128) << 20;  // behind a request; as PageStore::kMostWaiting
constexpr uint32_t kMostText = 1 << 12;                 // behind a reply

// False: the other side is gone. With a descriptor that the receiver gets, too; -1: without.
bool send_reply(int socket, const Reply&, const std::string& text, int descriptor);
// `descriptor`: -1, or one that came along. Errors: Failed if the other side is gone or its reply is wrong;
// that of the reply.
Result<uint64_t> receive_reply(int socket, int& descriptor);

}  // namespace gimbal::page_socket
