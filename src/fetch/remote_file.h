// A file on a server: where it is in the end, what the server says of it, and pieces of it.
#pragma once
#include <memory>
#include <string>

#include "fetch/http.h"
#include "files/gguf_bytes.h"

namespace gimbal {

struct Located {
  Url url;  // behind all redirections; may be good for a while only
  uint64_t bytes = 0;
  std::string unchanged;  // a strong ETag or a date; empty: the server tells neither
  std::string sha256;     // as Hugging Face tells it; empty: it does not
  bool ranges = false;
  std::optional<Reach> from = {};  // where the redirection to it was
};

// Asks for the first byte. `what`: for messages. Errors: refused(); Failed where the size is not told.
Result<Located> locate(Http&, const Credential&, const std::string& url, const std::string& what);

// `http` and `credential` must outlive it. Errors: Unsupported where the server knows no ranges.
Result<std::unique_ptr<RemoteFile>> open_remote(Http&, const Credential&, Located);

}  // namespace gimbal
