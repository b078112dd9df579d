// Something short that another program is told over HTTP, where only its status matters.
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
#include "fetch/address.h"

namespace gimbal {

// Whether anything can be posted here. Errors: those of Curl::open.
Status can_post();

// Posts JSON, in one try and without following redirections, and answers the status. It takes `seconds` at
// most, from the search for the address on; of an answer that goes on for ever the first 64 kB are read.
// `go_on` is asked once a second at least; false ends it. Errors: Failed, with the host and what happened;
// cancelled; those of can_post().
Result<long> post_json(const Url&, const std::string& json, double seconds,
                       const std::function<bool()>& go_on);

}  // namespace gimbal
