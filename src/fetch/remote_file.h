// A file on a server: its final URL, its properties and range reads.
#pragma once
#include <memory>
#include <string>

#include "fetch/http.h"
#include "files/file_bytes.h"

namespace gimbal {

struct Located {
  Url url;  // after all redirects; may expire
  uint64_t bytes = 0;
  std::string unchanged;  // a strong ETag or a date; empty: the server gives neither
  std::string sha256;     // from Hugging Face; empty: unknown
  bool ranges = false;
  std::optional<Reach> from = {};  // where the redirect to it came from
};

// Requests the first byte. `what`: for messages. Errors: refused(); Failed if the size is unknown.
// `from`: as Http::Question::from.
Result<Located> locate(Http&, const Credential&, const std::string& url, const std::string& what,
                       std::optional<Reach> from = {});

// `http` and `credential` must outlive it. Errors: Unsupported if the server lacks range requests.
Result<std::unique_ptr<RemoteFile>> open_remote(Http&, const Credential&, Located);

}  // namespace gimbal
