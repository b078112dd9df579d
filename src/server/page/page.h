// The web page that people see at "/": one file with everything in it, which asks the APIs beside it. It has
// nothing secret, so it needs no key; what it asks for does.
#pragma once
#include "server/http/message.h"

namespace gimbal::page {

// The page; 304 where the client has this one already; a few lines of plain text for one that does not take
// gzip, such as curl. `version`: of gimbal.
http::Response response(const http::Request&, const std::string& version);

}  // namespace gimbal::page
