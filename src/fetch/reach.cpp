#include "fetch/reach.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>

#include "base/folders.h"
#include "base/format.h"

namespace gimbal {
namespace {

struct Net {
  uint32_t address;
  int bits;
  Reach reach;
};
// RFC 6890: addresses that are not valid destinations on the public network.
constexpr Net kNets[] = {
    {0x00000000, 8, Reach::Loopback},                                       // 0.0.0.0 is this machine
    {0x7f000000, 8, Reach::Loopback},  {0xa9fe0000, 16, Reach::LinkLocal},  // 169.254/16
    {0x0a000000, 8, Reach::Private},   {0xac100000, 12, Reach::Private},    // 10/8, 172.16/12
    {0xc0a80000, 16, Reach::Private},  {0x64400000, 10, Reach::Private},    // 192.168/16, 100.64/10
    {0xc0000000, 24, Reach::Private},  {0xc6120000, 15, Reach::Private},    // 192.0.0/24, 198.18/15
    {0xe0000000, 3, Reach::LinkLocal},                                      // multicast and reserved
};

Reach of_v4(uint32_t a) {
  for (const Net& n : kNets)
    if ((a ^ n.address) >> (32 - n.bits) == 0) return n.reach;
  return Reach::Public;
}

Reach of_v6(const uint8_t* a) {
  const auto v4_at = [&](int i) {
    return of_v4(uint32_t(a[i]) << 24 | uint32_t(a[i + 1]) << 16 | uint32_t(a[i + 2]) << 8 | a[i + 3]);
  };
  static constexpr uint8_t kZero[16] = {};
  if (std::memcmp(a, kZero, 10) == 0) {
    if (a[10] == 0xff && a[11] == 0xff) return v4_at(12);  // ::ffff:127.0.0.1
    if (a[10] == 0 && a[11] == 0) return v4_at(12);        // ::1 is in 0.0.0.0/8 so
  }
  static constexpr uint8_t kNat64[12] = {0, 0x64, 0xff, 0x9b};
  if (std::memcmp(a, kNat64, 12) == 0) return v4_at(12);
  if (a[0] == 0x20 && a[1] == 0x02) return v4_at(2);  // 6to4
  if (a[0] == 0xfe) return (a[1] & 0xc0) == 0x80 ? Reach::LinkLocal : Reach::Private;
  if ((a[0] & 0xfe) == 0xfc) return Reach::Private;
  return a[0] == 0xff ? Reach::LinkLocal : Reach::Public;
}

// The port of the proxy that libcurl would use; 0: none.
int proxy_port_of(const Url& url) {
  std::string proxy;
  // libcurl does not look at HTTP_PROXY, which a web server's client may set.
  const bool https = url.scheme == "https";
  for (const char* name :
       {https ? "https_proxy" : "http_proxy", https ? "HTTPS_PROXY" : "", "all_proxy", "ALL_PROXY"})
    if (proxy.empty() && *name) proxy = environment_variable(name);
  if (proxy.empty()) return 0;
  const size_t scheme = proxy.find("://");
  const bool tls = proxy.starts_with("https://");
  std::string host = scheme == proxy.npos ? proxy : proxy.substr(scheme + 3);
  host = host.substr(0, host.find('/'));
  const size_t colon = host.rfind(':');
  if (colon == host.npos || host.find(']', colon) != host.npos) return tls ? 443 : 1080;  // libcurl's own
  return std::atoi(host.c_str() + colon + 1);
}

bool allows(Way& way, Reach to, int port) {
  if (way.proxy_port && port == way.proxy_port) return true;  // the name was judged
  way.reached = to;
  if (!way.from || may_lead(*way.from, to)) return true;
  way.refused = true;
  return false;
}

int port_of(const sockaddr* a) {
  if (a->sa_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(a)->sin_port);
  if (a->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(a)->sin6_port);
  return 0;
}

curl_socket_t open_socket(void* to, curlsocktype, curl_sockaddr* a) {
  if (!allows(*static_cast<Way*>(to), reach_of(&a->addr), port_of(&a->addr))) return CURL_SOCKET_BAD;
  return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

#if LIBCURL_VERSION_NUM >= 0x075000
// Also called for a connection that is reused from an earlier request.
int before_request(void* to, char* address, char*, int port, int) {
  return allows(*static_cast<Way*>(to), reach_of(std::string(address ? address : "")), port)
             ? CURL_PREREQFUNC_OK
             : CURL_PREREQFUNC_ABORT;
}
#endif

}  // namespace

Reach reach_of(const sockaddr* a) {
  if (a->sa_family == AF_INET) return of_v4(ntohl(reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr));
  if (a->sa_family == AF_INET6) return of_v6(reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr.s6_addr);
  return Reach::LinkLocal;
}

Reach reach_of(const std::string& host) {
  std::string name = host;
  if (name.starts_with('[')) name = name.substr(1, name.find(']') - 1);
  else if (const size_t colon = name.find(':'); colon == name.rfind(':')) name = name.substr(0, colon);
  name = name.substr(0, name.find('%'));  // a zone
  while (name.ends_with('.')) name.pop_back();
  in_addr v4{};
  in6_addr v6{};
  if (inet_aton(name.c_str(), &v4)) return of_v4(ntohl(v4.s_addr));  // also 2130706433 and 0x7f.1
  if (inet_pton(AF_INET6, name.c_str(), &v6) == 1) return of_v6(v6.s6_addr);
  return name == "localhost" || name.ends_with(".localhost") ? Reach::Loopback : Reach::Public;
}

bool may_lead(Reach from, Reach to) {
  return to == Reach::Public || to == from || (from == Reach::Loopback && to == Reach::Private);
}

Way::Way(const Url& url, std::optional<Reach> f)
    : from(f), reached(reach_of(url.host)), proxy_port(proxy_port_of(url)) {
  refused = from && !may_lead(*from, reached);
}

void keep_to(const Curl& c, CURL* easy, Way& way) {
  c.set(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  c.set(easy, CURLOPT_OPENSOCKETDATA, &way);
#if LIBCURL_VERSION_NUM >= 0x075000
  c.set(easy, CURLOPT_PREREQDATA, &way);
  if (c.set(easy, CURLOPT_PREREQFUNCTION, before_request) == CURLE_OK) return;
#endif
  if (way.from) c.set(easy, CURLOPT_FRESH_CONNECT, 1L);
}

Error leads_inside(const Url& to) {
  return {Code::Failed,
          format("redirected to {}, an address inside a network that the first site is not in", to.origin()),
          "if you trust that address, give it directly", reason::kLeadsInside};
}

}  // namespace gimbal
