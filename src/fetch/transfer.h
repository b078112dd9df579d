// The bytes of one file over several connections at once, each filling a gap of a part file.
#pragma once
#include <string>

#include "fetch/http.h"
#include "fetch/part_file.h"

namespace gimbal {

class TransferWatch : public Patience {
 public:
  // So much is there now; false ends it. Called several times a second.
  virtual bool arrived(uint64_t done, uint64_t total) = 0;
  // A connection was lost and is made anew.
  virtual void retried(const std::string& why) = 0;
};

struct TransferEnd {
  enum : uint8_t {
    Complete,
    Cancelled,
    NoRanges,  // the server sent the whole file, though a part was asked for; nothing of it was kept
    Refused,   // `answer` has the status: perhaps the address has expired
    Failed,    // `error`
  } how = Complete;
  HttpAnswer answer = {};
  Error error = {};
};

struct TransferFrom {
  Url url;
  const Credential& credential;
  std::string unchanged;  // an ETag or a date: a server whose file is another one by now says so (If-Range)
  bool ranges = true;     // false: the file is asked for as a whole, on one connection
  std::optional<Reach> from = {};  // where the redirection to `url` was
};

// Fills the gaps. What arrived is in the part file whatever the end; its note is written now and then, and at
// the end. A connection that fails is made anew, up to five times without a byte between.
TransferEnd transfer(const Curl&, const TransferFrom&, PartFile&, TransferWatch&);

}  // namespace gimbal
