// A file of a site that somebody else named: whole in memory, or not at all, within limits of bytes and time.
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
#include "fetch/address.h"

namespace gimbal {

struct SmallFile {
  Url url;
  size_t max_bytes;
  double until;                                 // now() when it must be there
  std::function<bool(const Url&)> may_lead_to;  // whether a redirect may be followed
};

// Whether it is available on this machine. Errors: those of Curl::open.
Status can_fetch();

// The file's bytes, by one attempt. Connects to a private network, or to this machine, only if the URL has
// an address of that kind in place of a name. From any thread. Errors: Failed, with the host and the cause;
// those of can_fetch().
Result<std::string> fetch_small_file(const SmallFile&);

}  // namespace gimbal
