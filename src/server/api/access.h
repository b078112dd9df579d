// Access control, decided from a request's head alone. Keys tell clients apart; the other rules keep out
// web pages, because a browser sends requests to this machine on behalf of any site that its user
// visits.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "server/api/error.h"
#include "server/http/message.h"

namespace gimbal::api {

struct Access {
  std::vector<std::string> keys = {};   // accepted keys; empty: no key is required
  std::vector<std::string> sites = {};  // origins whose pages may send requests, or "*"
  // Accepted Host names, lower case, without a port; IPv6 addresses in brackets. Empty: any.
  std::vector<std::string> hosts = {};
};

// The loopback names, whatever the server's address. They exclude a site that makes its own name resolve to
// this machine (DNS rebinding).
std::vector<std::string> loopback_names();

// The first of `names` that is invalid for Access::hosts, such as one with a port; nullopt: all are valid.
std::optional<std::string> wrong_host(const std::vector<std::string>& names);
// The same for Access::sites: "https://chat.example" or "*".
std::optional<std::string> wrong_site(const std::vector<std::string>& sites);

// Status 403 if the Host is not served, or if the request comes from a page of neither the server nor
// `sites`. Any site may link to the server's own page: it only shows, and sends nothing.
Refused refuse_by_head(const Access&, const http::Request&);

// The key in a request; empty: none.
std::string_view given_key(const http::Request&);
// Status 401 if a key is required and the request has none of `keys`.
Refused refuse_by_key(const Access&, const http::Request&);

// CORS headers that let a page of `sites` read the answer; empty for other requests.
std::vector<http::Header> headers_for_site(const Access&, const http::Request&);
// Answers a CORS preflight. `methods`: those of this path. Call it after refuse_by_head().
http::Response preflight(const Access&, const http::Request&, const std::string& methods);

// 256 random bits, as text.
std::string generated_key();

}  // namespace gimbal::api
