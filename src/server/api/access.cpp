#include "server/api/access.h"

#include <algorithm>
#include <cctype>
#include <random>

#include "base/format.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

using http::lower;

bool has(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string header_of(const http::Request& r, std::string_view name) {
  const std::string* h = r.header(name);
  return h ? lower(*h) : std::string();
}

// "localhost" of "localhost:8080", "[::1]" of "[::1]:8080".
std::string_view without_port(std::string_view host) {
  const size_t colon = host.rfind(':');
  const bool in_brackets = colon != host.npos && host.find(']', colon) != host.npos;
  return colon == host.npos || in_brackets ? host : host.substr(0, colon);
}

// The host and port of an origin; empty for "null" and for schemes that are not the web's.
std::string_view place_of(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return origin.substr(scheme.size());
  return {};
}

// An allowed origin. Any page can hide its origin, which gives "null", so only "*" allows that.
bool is_site(const Access& access, const std::string& origin) {
  return has(access.sites, "*") || (!origin.empty() && origin != "null" && has(access.sites, origin));
}

// A user follows a link or bookmark to the page.
bool opens_the_page(const http::Request& r) {
  return (r.method == "GET" || r.method == "HEAD") && r.path == "/" &&
         header_of(r, "sec-fetch-mode") == "navigate" && header_of(r, "sec-fetch-dest") == "document";
}

// Whether another site's page sent this, by headers that the browser sets and pages cannot.
bool is_from_elsewhere(const http::Request& r) {
  const std::string origin = header_of(r, "origin"), from = header_of(r, "sec-fetch-site");
  if (from == "same-origin" || (from == "none" && origin.empty())) return false;
  if (!from.empty()) return true;
  if (origin.empty()) return false;  // no browser, or a page of the server itself
  const std::string_view place = place_of(origin);
  return place.empty() || place != header_of(r, "host");
}

// Takes the same time wherever two differ.
bool same(std::string_view given, std::string_view key) {
  unsigned difference = unsigned(given.size() != key.size());
  for (size_t i = 0; i < key.size(); i++)
    difference |= unsigned(uint8_t(key[i]) ^ uint8_t(i < given.size() ? given[i] : 0));
  return difference == 0;
}

// Header names separated by commas, as in a CORS preflight.
bool is_list_of_names(std::string_view s) {
  return s.size() <= 4096 && std::all_of(s.begin(), s.end(), [](char c) {
           return std::isalnum(uint8_t(c)) || c == '-' || c == '_' || c == ',' || c == ' ';
         });
}

}  // namespace

std::vector<std::string> loopback_names() { return {"localhost", "127.0.0.1", "[::1]"}; }

std::optional<std::string> wrong_host(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool is_v6 = name.size() > 2 && name.front() == '[' && name.back() == ']';
    const std::string_view inner = is_v6 ? std::string_view(name).substr(1, name.size() - 2) : name;
    const bool fits = !inner.empty() && std::all_of(inner.begin(), inner.end(), [&](char c) {
      return std::isalnum(uint8_t(c)) || c == '.' || c == '-' || c == '_' || (is_v6 && c == ':');
    });
    if (!fits) return name;
  }
  return {};
}

std::optional<std::string> wrong_site(const std::vector<std::string>& sites) {
  for (const std::string& site : sites) {
    const size_t scheme = site.find("://");
    const bool fits = scheme != site.npos && scheme > 0 && scheme + 3 < site.size() &&
                      site.find_first_of("/ \t,\r\n", scheme + 3) == site.npos;
    if (site != "*" && !fits) return site;
  }
  return {};
}

Refused refuse_by_head(const Access& access, const http::Request& r) {
  // Without a Host it is HTTP/1.0, which no browser speaks.
  if (const std::string* host = r.header("host"); host && !access.hosts.empty()) {
    const std::string name = lower(without_port(*host));
    if (!has(access.hosts, name))
      return ApiError{403,
                      format("this server has no name {}: its setting 'allow-host' gives it more names",
                             quoted_briefly(name)),
                      "", "host_not_allowed"};
  }
  if (!is_from_elsewhere(r) || is_site(access, header_of(r, "origin")) || opens_the_page(r)) return {};
  const std::string* origin = r.header("origin");
  return ApiError{
      403,
      format("pages of {} may not use this server: its setting 'cors-origin' names those that may",
             origin ? quoted_briefly(*origin) : "other sites"),
      "", "origin_not_allowed"};
}

std::string_view given_key(const http::Request& r) {
  if (const std::string* h = r.header("authorization"))
    if (lower(h->substr(0, 7)) == "bearer ") return std::string_view(*h).substr(7);
  const std::string* h = r.header("x-api-key");
  return h ? std::string_view(*h) : std::string_view();
}

Refused refuse_by_key(const Access& access, const http::Request& r) {
  if (access.keys.empty()) return {};
  const std::string_view given = given_key(r);
  bool any = false;
  for (const std::string& key : access.keys) any |= same(given, key);
  if (any) return {};
  return ApiError{401,
                  given.empty()
                      ? "an API key is needed: send it as Authorization: Bearer KEY or x-api-key: KEY"
                      : "the API key is not right",
                  "", "invalid_api_key"};
}

std::vector<http::Header> headers_for_site(const Access& access, const http::Request& r) {
  if (access.sites.empty()) return {};
  std::vector<http::Header> out = {{"Vary", "Origin"}};  // a cache must not give one site's to another
  const std::string* origin = r.header("origin");
  const bool any = has(access.sites, "*");
  if (!any && (!origin || !is_site(access, lower(*origin)))) return out;
  out.push_back({"Access-Control-Allow-Origin", any ? "*" : *origin});
  out.push_back({"Access-Control-Expose-Headers", "x-request-id, request-id, retry-after, x-gimbal-receipt"});
  return out;
}

http::Response preflight(const Access& access, const http::Request& r, const std::string& methods) {
  http::Response out{204, "", ""};
  out.headers = headers_for_site(access, r);
  out.headers.push_back({"Access-Control-Allow-Methods", methods});
  // Official clients send headers of their own, which change from one version to the next.
  const std::string* wanted = r.header("access-control-request-headers");
  out.headers.push_back(
      {"Access-Control-Allow-Headers", wanted && is_list_of_names(*wanted) && !wanted->empty()
                                           ? *wanted
                                           : "authorization, content-type, x-api-key, anthropic-version"});
  out.headers.push_back({"Access-Control-Max-Age", "600"});
  return out;
}

std::string generated_key() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device system;
  std::string key = "gimbal-";
  for (int i = 0; i < 8; i++) {
    uint32_t bits = system();
    for (int k = 0; k < 8; k++, bits >>= 4) key += kDigits[bits & 15];
  }
  return key;
}

}  // namespace gimbal::api
