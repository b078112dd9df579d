// Short HTTP messages to another program, where only the status matters.
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
#include "fetch/address.h"

namespace gimbal {

// Posts JSON once, without redirects, and returns the status. Takes at most `seconds`, including
// the name lookup; reads at most 64 kB of an endless response. Calls `go_on` at least once a
// second; false cancels. Errors: Failed, with the host and the cause; cancelled; those of
// Curl::open.
Result<long> post_json(const Url&, const std::string& json, double seconds,
                       const std::function<bool()>& go_on);

}  // namespace gimbal
