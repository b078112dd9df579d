// What happens while a model is fetched.
#pragma once
#include <cstdint>
#include <string>

namespace gimbal {

// Why fetching ended.
namespace reason {
inline constexpr const char* kCancelled = "cancelled";  // by whoever asked for it
inline constexpr const char* kDenied = "denied";        // by a server: a token or a permission is missing
}  // namespace reason

struct PullEvent {
  enum Kind : uint8_t {
    Resumed,    // `done` bytes are there from an earlier run
    Waiting,    // somebody else fetches the same file
    NoRanges,   // the server knows no parts of files: one connection, and no going on later
    Changed,    // what was there may be of another file: from the beginning
    Retried,    // a connection was lost, for the reason `text`, and is made anew
    Unchecked,  // nobody tells the file's hash, so that only its length is checked
    Hidden,     // the token is not sent, because the server is asked in clear
    Progress,   // several times a second
    Checking,   // the hash of what arrived, several times a second
  } kind;
  std::string file;              // its name in the repository, or the end of its URL
  uint64_t done = 0, total = 0;  // bytes
  std::string text = {};
};

// A word for programs, which never changes: "resumed".
const char* name_of(PullEvent::Kind);
// A sentence for people; empty for Progress and Checking.
std::string sentence(const PullEvent&);

class PullWatch {
 public:
  virtual ~PullWatch() = default;
  // False ends it: what arrived is kept. Also called with Progress where nothing has been asked for yet.
  virtual bool on(const PullEvent&) = 0;
};

}  // namespace gimbal
