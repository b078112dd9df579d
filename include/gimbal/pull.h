// Models by their addresses, fetched into the caches of this machine: those of Hugging Face into its own,
// where its programs find them, too.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "gimbal/error.h"

namespace gimbal::v1 {

struct PullEvent {
  enum Kind {
    Resolved,  // `file` is what the address names, `total` its bytes with all parts
    Note,      // `text` says what the user may want to know, as of a server that knows no parts of files
    Progress,  // `done` of `total` bytes of a file are here; several times a second, also while waiting
    Checking,  // the same for the hash of what arrived
  } kind;
  std::string file, text;
  uint64_t done = 0, total = 0;
};

struct PullOptions {
  int connections = 4;  // at once, 1 to 16
  std::string sha256;   // that the file must have; empty: as Hugging Face tells it
  // Called from the thread that called pull(). False ends it: what arrived is kept, and the next call goes
  // on.
  std::function<bool(const PullEvent&)> events;
};

struct Pulled {
  std::string path;     // for Engine::load; of the first file
  uint64_t bytes = 0;   // of all files
  bool fetched = true;  // false: all of it was here already
};

// `address`: hf.co/OWNER/REPO[:QUANT], hf.co/OWNER/REPO/FILE.gguf or the URL of a .gguf file. Tokens, proxies
// and folders are those of the usual variables (docs/models-by-name.md). Engine::load takes the address, too,
// once its model is here. Errors: Usage; NotFound; Unsupported without libcurl; Failed, whose reason is
// "denied" where a token or a permission is missing and "cancelled" after a callback said so.
Result<Pulled> pull(const std::string& address, const PullOptions& = {});

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
