#include "server/api/picture_fetches.h"

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/format.h"
#include "fetch/small_file.h"
#include "media/picture.h"
#include "server/api/text.h"
#include "server/http/message.h"

namespace gimbal::api {
namespace {

// A host and its port, empty if absent.
struct HostAndPort {
  std::string_view host, port;
};

HostAndPort divided(std::string_view text) {
  const size_t behind = text.starts_with('[') ? std::min(text.find(']'), text.size()) : 0;
  const size_t colon = std::min(text.find(':', behind), text.size());
  return {text.substr(0, colon), text.substr(std::min(colon + 1, text.size()))};
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<std::string> PictureFetches::wrong_host(const std::vector<std::string>& hosts) {
  for (const std::string& text : hosts) {
    const HostAndPort at = divided(text);
    const bool is_v6 = at.host.size() > 2 && at.host.front() == '[' && at.host.back() == ']';
    const std::string_view name = is_v6 ? at.host.substr(1, at.host.size() - 2) : at.host;
    const bool fits = !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
      return std::isalnum(uint8_t(c)) || c == '.' || c == '-' || c == '_' || (is_v6 && c == ':');
    });
    if (!fits || (at.host.size() < text.size() && !is_port(at.port))) return text;
  }
  return {};
}

void PictureFetches::allow(std::vector<std::string> hosts) {
  for (std::string& host : hosts) host = http::lower(host);
  hosts_ = std::move(hosts);
}

bool PictureFetches::allows(const Url& url) const {
  const HostAndPort wanted = divided(url.host);
  const std::string_view own = url.scheme == "https" ? "443" : "80";
  const std::string_view port = wanted.port.empty() ? own : wanted.port;
  return url.credentials.empty() && std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& text) {
           const HostAndPort allowed = divided(text);
           return allowed.host == wanted.host && port == (allowed.port.empty() ? own : allowed.port);
         });
}

Refused PictureFetches::check(const PictureAddress& address, Url& to) const {
  auto url = Url::parse(address.url);
  if (!url) return wrong_field(address.where, format("'{}' is no URL of http or https", address.where));
  to = std::move(*url);
  if (allows(to)) return {};
  return wrong_field(address.where,
                     format("'{}': this server fetches no pictures{}; send the picture itself, as "
                            "'data:image/png;base64,...', or ask the operator to allow its host "
                            "('allow_image_urls')",
                            address.where, hosts_.empty() ? "" : " from " + quoted_briefly(to.host)));
}

Refused PictureFetches::fetch(const std::string& client, ChatInput& input) {
  if (input.addresses.empty()) return {};
  std::vector<Url> urls(input.addresses.size());
  for (size_t i = 0; i < urls.size(); i++)
    if (auto no = check(input.addresses[i], urls[i])) return no;
  if (!turns_.take(client))
    return ApiError{503, "too many pictures are being fetched; try again later", "", "fetches_busy", 2};
  struct Turn {
    Turns& of;
    ~Turn() { of.give_back(); }
  } const turn{turns_};
  const double until = now() + seconds;
  for (size_t i = 0; i < urls.size(); i++) {
    const auto& [picture, url, where] = input.addresses[i];
    const size_t room = kMostPictureBytes - picture_bytes(input);
    auto bytes = fetch_small_file({urls[i], room, until, [this](const Url& next) { return allows(next); }});
    if (!bytes)
      return wrong_field(where,
                         format("'{}': the picture could not be fetched: {}", where, bytes.error().message));
    if (auto no = keep_bytes(std::move(*bytes), where, check_picture_bytes, input, picture)) return no;
  }
  input.addresses.clear();
  return {};
}

}  // namespace gimbal::api
