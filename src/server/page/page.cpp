#include "server/page/page.h"

#include "base/format.h"
#include "base/hash.h"

// Hidden: the linker then needs no table entry for them, in position-independent code either.
extern "C" {
__attribute__((visibility("hidden"))) extern const char gimbal_page[];
__attribute__((visibility("hidden"))) extern const char gimbal_page_policy[];
__attribute__((visibility("hidden"))) extern const uint64_t gimbal_page_sizes[2];
}

namespace gimbal::page {
namespace {

std::string_view compressed() { return {gimbal_page, gimbal_page_sizes[0]}; }

// Written when the page is built, because it names the hashes of the page's script and styles.
std::string policy() {
  std::string_view text(gimbal_page_policy, gimbal_page_sizes[1]);
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

const std::string& etag() {
  static const std::string tag = format("\"{:016x}\"", Hash().add(compressed()).add(policy()).value());
  return tag;
}

// Whether one of a list such as "br, gzip;q=0.8" is gzip, or anything, and not refused by q=0.
bool takes_gzip(std::string_view list) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string item;
    for (char c : list.substr(0, comma))
      if (c != ' ' && c != '\t') item += c;
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
    const size_t semicolon = item.find(';');
    const std::string_view name = std::string_view(item).substr(0, semicolon);
    if (name != "gzip" && name != "x-gzip" && name != "*") continue;
    const std::string_view q =
        semicolon == item.npos ? std::string_view() : std::string_view(item).substr(semicolon + 1);
    return !(q.starts_with("q=0") && q.find_first_not_of("0.", 2) == q.npos);
  }
  return false;
}

}  // namespace

http::Response response(const http::Request& request, const std::string& version) {
  http::Response r;
  r.headers = {{"Vary", "Accept, Accept-Encoding"},
               {"X-Content-Type-Options", "nosniff"},
               {"Referrer-Policy", "no-referrer"},
               {"Cross-Origin-Opener-Policy", "same-origin"},
               {"Cross-Origin-Resource-Policy", "same-origin"},
               {"Cache-Control", "no-cache"}};  // may be cached, but is revalidated each time
  const std::string* encodings = request.header("accept-encoding");
  if (!encodings || !takes_gzip(*encodings)) {
    r.type = "text/plain; charset=utf-8";
    r.body = format(
        "gimbal {} serves models here. A browser shows a page at this address; it is sent in gzip only, "
        "which "
        "this client does not accept (curl does with its option 'compressed'). Programs ask /v1, for example "
        "/v1/models.\n",
        version);
    return r;
  }
  r.headers.push_back({"ETag", etag()});
  r.type = "text/html; charset=utf-8";
  r.headers.push_back({"Content-Security-Policy", policy()});
  r.headers.push_back({"X-Frame-Options", "DENY"});
  if (const std::string* known = request.header("if-none-match"); known && *known == etag()) {
    r.status = 304;
    return r;
  }
  r.headers.push_back({"Content-Encoding", "gzip"});
  r.body = compressed();
  return r;
}

}  // namespace gimbal::page
