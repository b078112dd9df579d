// The web page at "/": one self-contained file that calls the server's APIs. It has no secrets, so it needs
// no key; its API requests do.
#pragma once
#include "server/http/message.h"

namespace gimbal::page {

// The page; 304 if the client has the current one; a few lines of plain text for clients without gzip, such
// as curl. `version`: of gimbal.
http::Response response(const http::Request&, const std::string& version);

}  // namespace gimbal::page
