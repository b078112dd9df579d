// Who may use the server, before anything of a request is read but its head. Keys tell people apart; the
// other rules keep out web pages: a browser sends requests to this machine for any site that its user looks
// at.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "server/api/error.h"
#include "server/http/message.h"

namespace gimbal::api {

struct Access {
  std::vector<std::string> keys = {};   // one of these is needed; none: anybody may ask
  std::vector<std::string> sites = {};  // origins whose pages may ask, or "*"
  // Names that Host may have, in lower case and without a port; IPv6 addresses in brackets. Empty: any.
  std::vector<std::string> hosts = {};
};

// The names of a server that only this machine can reach, whatever its address. A site whose own name was
// made to lead here (DNS rebinding) has none of them.
std::vector<std::string> loopback_names();

// Nothing, where `names` can stand in Access::hosts; else the first that cannot, such as one with a port.
std::optional<std::string> wrong_host(const std::vector<std::string>& names);
// The same for Access::sites: "https://chat.example" or "*".
std::optional<std::string> wrong_site(const std::vector<std::string>& sites);

// Status 403 for a request with a Host that is not served, and for one of a page that is neither the server's
// nor of `sites`. A link to the server's own page may be followed from anywhere: it shows, and sends nothing.
Refused refuse_by_head(const Access&, const http::Request&);

// The key that a request brings; empty: none.
std::string_view given_key(const http::Request&);
// Status 401 where a key is needed and this request has none of them.
Refused refuse_by_key(const Access&, const http::Request&);

// What lets a page of `sites` read the answer; empty for requests of others.
std::vector<http::Header> headers_for_site(const Access&, const http::Request&);
// The answer to a browser that asks whether it may ask. `methods`: of this path. Behind refuse_by_head().
http::Response preflight(const Access&, const http::Request&, const std::string& methods);

// 256 random bits, as text.
std::string generated_key();

}  // namespace gimbal::api
