// Downloads one file over parallel connections, each of which fills a gap of a part file.
#pragma once
#include <string>

#include "fetch/http.h"
#include "fetch/part_file.h"

namespace gimbal {

class TransferWatch : public Patience {
 public:
  // Reports progress several times a second; return false to cancel.
  virtual bool arrived(uint64_t done, uint64_t total) = 0;
  // A connection was lost and is reopened.
  virtual void retried(const std::string& why) = 0;
};

struct TransferEnd {
  enum : uint8_t {
    Complete,
    Cancelled,
    NoRanges,  // the server ignored a range request and sent the whole file; nothing was kept
    Refused,   // `answer` has the status: the URL may have expired
    Failed,    // `error`
  } how = Complete;
  HttpAnswer answer = {};
  Error error = {};
};

struct TransferFrom {
  Url url;
  const Credential& credential;
  std::string unchanged;  // an ETag or a date, sent as If-Range, so that the server reports a changed file
  bool ranges = true;     // false: requests the whole file, on one connection
  std::optional<Reach> from = {};  // where the redirect to `url` came from
};

// Fills the gaps. Arrived bytes stay in the part file in every case; the note is written periodically and
// at the end. Reopens a failed connection, up to five times without a byte in between.
TransferEnd transfer(const Curl&, const TransferFrom&, PartFile&, TransferWatch&);

}  // namespace gimbal
