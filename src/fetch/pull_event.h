// Events during the download of a model.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"

namespace gimbal {

// Reasons why a download ended.
namespace reason {
inline constexpr const char* kDenied = "denied";  // by a server: a token or a permission is missing
}  // namespace reason

struct PullEvent {
  enum Kind : uint8_t {
    Resumed,    // `done` bytes remain from an earlier run
    Waiting,    // another process fetches the same file
    NoRanges,   // the server does not support range requests: one connection, no resuming
    Changed,    // the file may have changed on the server: the download starts over
    Retried,    // a connection was lost, with the reason `text`, and is reopened
    Unchecked,  // the file's hash is unknown: only its length is checked
    Hidden,     // the token is not sent, because the connection is not encrypted
    Progress,   // several times a second
    Checking,   // hashing the arrived bytes, several times a second
  } kind;
  std::string file;              // its name in the repository, or the end of its URL
  uint64_t done = 0, total = 0;  // bytes
  std::string text = {};
};

// A stable word for programs: "resumed".
const char* name_of(PullEvent::Kind);
// A sentence for people; empty for Progress and Checking.
std::string sentence(const PullEvent&);

class PullWatch {
 public:
  virtual ~PullWatch() = default;
  // Return false to cancel; arrived bytes are kept. Also called with Progress before the first request.
  virtual bool on(const PullEvent&) = 0;
};

}  // namespace gimbal
