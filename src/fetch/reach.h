// Where a redirection may lead: a site on the public network must not make this machine ask addresses that
// only this machine can reach. The address of the connection counts, not the name, which a site's own name
// server answers as it likes. Behind a proxy, which looks names up itself, only the name can be judged.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "fetch/address.h"
#include "fetch/curl.h"

struct sockaddr;

namespace gimbal {

enum class Reach : uint8_t { Public, Private, Loopback, LinkLocal };

// Of IPv4 and IPv6; what is neither is LinkLocal, where nothing leads.
Reach reach_of(const sockaddr*);
// Of an address in letters, or of a name by itself: "localhost" is Loopback, any other one Public.
Reach reach_of(const std::string& host);
// Outwards, or to a place of the same kind; from this machine also into its network.
bool may_lead(Reach from, Reach to);

// One request's connections.
struct Way {
  Way(const Url&, std::optional<Reach> from);

  std::optional<Reach> from;  // where a redirection was; nothing: the user named the address
  Reach reached;              // of the connection, once there is one
  bool refused = false;       // an address that `from` may not lead to
  int proxy_port;             // 0: the environment names no proxy
};

// Connects to nothing that `way` refuses; it must live as long as the handle is used.
void keep_to(const Curl&, CURL*, Way& way);
// Why a request failed whose way was refused.
Error leads_inside(const Url& to);

}  // namespace gimbal
