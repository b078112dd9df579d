// Downloads models by their addresses into the caches of this machine. Models of Hugging Face go into its own
// cache, where its programs find them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "gimbal/error.h"

namespace gimbal::v1 {

struct PullEvent {
  enum Kind {
    Resolved,  // `file` is the file that the address names, `total` its bytes with all parts
    Note,      // `text` is a notice for the user, e.g. that the server does not support range requests
    Progress,  // `done` of `total` bytes of a file have arrived; several times a second, also while waiting
    Checking,  // the same for hashing the file
  } kind;
  std::string file, text;
  uint64_t done = 0, total = 0;
};

struct PullOptions {
  int connections = 4;  // at once, 1 to 16
  std::string sha256;   // of the file, in hexadecimal; empty: the one that Hugging Face gives
  // Called from the thread that called pull(). Return false to cancel: the bytes that arrived are kept, and
  // the next call continues with them.
  std::function<bool(const PullEvent&)> events;
};

struct Pulled {
  std::string path;     // for Engine::load; of the first file
  uint64_t bytes = 0;   // of all files
  bool fetched = true;  // false: all files were in the cache already
};

// `address`: hf.co/OWNER/REPO[:QUANT], hf.co/OWNER/REPO/FILE.gguf or the URL of a .gguf file. Tokens, proxies
// and folders come from the usual environment variables (docs/models-by-name.md). Afterwards Engine::load
// takes the address, too. Errors: Usage; NotFound; Unsupported without libcurl; Failed with the reason
// "denied" if a token or permission is missing, and "cancelled" if the callback returned false.
Result<Pulled> pull(const std::string& address, const PullOptions& = {});

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
