// Limits redirects: a public site must not make this machine contact addresses that only this machine can
// reach. The connection's address decides, not the name, because a site's own DNS server may resolve it to
// any address. Only the name can be checked behind a proxy, which resolves names itself.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "fetch/address.h"
#include "fetch/curl.h"

struct sockaddr;

namespace gimbal {

namespace reason {
inline constexpr const char* kLeadsInside = "leads-inside";  // Error::reason of leads_inside()
}

enum class Reach : uint8_t { Public, Private, Loopback, LinkLocal };

// Of IPv4 and IPv6; other families count as LinkLocal, where no redirect may lead.
Reach reach_of(const sockaddr*);
// Of an address as text, or of a host name: "localhost" is Loopback, all others Public.
Reach reach_of(const std::string& host);
// Allowed: outwards, or to the same kind; also from this machine into its private network.
bool may_lead(Reach from, Reach to);

// The connections of one request.
struct Way {
  Way(const Url&, std::optional<Reach> from);

  std::optional<Reach> from;  // origin of a redirect; empty: the user gave the address
  Reach reached;              // kind of the connection's address, once connected
  bool refused = false;       // an address was blocked by may_lead()
  int proxy_port;             // 0: the environment sets no proxy
};

// Blocks connections that `way` does not allow; `way` must outlive the handle.
void keep_to(const Curl&, CURL*, Way& way);
// The error of a request that was blocked.
Error leads_inside(const Url& to);

}  // namespace gimbal
