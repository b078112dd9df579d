#include "fetch/address.h"

#include <algorithm>
#include <vector>

#include "base/folders.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr std::string_view kForms =
    "write hf.co/OWNER/REPO, hf.co/OWNER/REPO:QUANT, hf.co/OWNER/REPO/FILE.gguf, or the URL of a .gguf file";

Error no_address(std::string_view text, std::string_view why) {
  return {Code::Usage, format("{} is not a model address: {}", gimbal::quoted(text), why),
          kForms,      "",
          "model",     text};
}

bool is_gguf(std::string_view path) {
  return path.size() > 5 && path[path.size() - 6] != '/' &&
         (path.ends_with(".gguf") || path.ends_with(".GGUF"));
}

// A name as Hugging Face allows them; no path leads out of a folder through it.
bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= 96 && name[0] != '.' && name[0] != '-' &&
         name.find("..") == name.npos && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                  c == '_' || c == '.';
         });
}

bool is_safe_path(std::string_view path) {
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return std::none_of(path.begin(), path.end(), [](char c) { return uint8_t(c) < 0x20 || c == 0x7f; });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = c | 0x20;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string decoded(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); i++) {
    const int high = i + 2 < path.size() && path[i] == '%' ? hex_digit(path[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(path[i + 2]) : -1;
    if (low < 0) out += path[i];
    else out += char(high * 16 + low), i += 2;
  }
  return out;
}

// The part after the site's name, without a leading slash.
Result<ModelAddress> of_repository(std::string_view whole, std::string_view rest) {
  if (const size_t query = rest.find_first_of("?#"); query != rest.npos) rest = rest.substr(0, query);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = rest.find('/');
  if (slash == rest.npos) return no_address(whole, "the owner or the repository is missing");
  const size_t end = std::min({rest.find('/', slash + 1), rest.find(':', slash + 1), rest.size()});
  ModelAddress a;
  a.repository = rest.substr(0, end);
  if (!is_plain(rest.substr(0, slash)) || !is_plain(rest.substr(slash + 1, end - slash - 1)))
    return no_address(whole, format("{} is not a repository name", gimbal::quoted(a.repository)));
  if (end == rest.size()) return a;
  if (rest[end] == ':') {
    a.quant = rest.substr(end + 1);
    if (!is_plain(a.quant))
      return no_address(whole, format("{} is not a quantization", gimbal::quoted(a.quant)));
    return a;
  }
  a.file = decoded(rest.substr(end + 1));
  for (const std::string_view way : {"resolve/", "blob/"}) {
    if (!a.file.starts_with(way)) continue;
    const size_t behind = std::min(a.file.find('/', way.size()), a.file.size());
    a.revision = a.file.substr(way.size(), behind - way.size());
    a.file.erase(0, std::min(behind + 1, a.file.size()));
    if (!is_plain(a.revision))
      return no_address(whole, format("{} is not a revision", gimbal::quoted(a.revision)));
    break;
  }
  if (!is_gguf(a.file) || !is_safe_path(a.file))
    return no_address(whole, format("{} is not a .gguf file", gimbal::quoted(a.file)));
  return a;
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  Url u;
  const size_t colon = text.find("://");
  if (colon == text.npos) return no_address(text, "it does not begin with http:// or https://");
  for (char c : text.substr(0, colon)) u.scheme += char(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  if (u.scheme != "http" && u.scheme != "https")
    return no_address(u.scheme + "://...", "only http and https are supported");
  std::string_view rest = text.substr(colon + 3);
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, end);
  rest.remove_prefix(end);
  if (const size_t at = authority.rfind('@'); at != authority.npos)
    u.credentials = authority.substr(0, at), authority.remove_prefix(at + 1);
  for (char c : authority) u.host += char(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  rest = rest.substr(0, rest.find('#'));
  const size_t query = std::min(rest.find('?'), rest.size());
  u.path = query ? rest.substr(0, query) : "/";
  u.query = rest.substr(query);
  const auto bad = [](char c) { return uint8_t(c) <= 0x20 || c == 0x7f || c == '\\'; };
  if (u.host.empty() || std::any_of(text.begin(), text.end(), bad))
    return no_address(u.scheme + "://" + u.host,
                      "the host is missing, or a character is not allowed in URLs");
  return u;
}

std::string Url::whole() const {
  return scheme + "://" + (credentials.empty() ? "" : credentials + "@") + host + path + query;
}

bool Url::is_loopback() const {
  const std::string name = host.substr(0, host.starts_with('[') ? host.find(']') + 1 : host.find(':'));
  // A host that only begins like an address of this machine, as 127.example.org, is another one.
  const bool is_number = name.find_first_not_of("0123456789.") == name.npos;
  return name == "localhost" || name == "[::1]" || (is_number && name.starts_with("127."));
}

std::string ModelAddress::name() const {
  if (repository.empty()) {
    const auto u = Url::parse(url);
    return u ? u->shown() : "";
  }
  return "hf.co/" + repository + (file.empty() ? "" : "/" + file) + (quant.empty() ? "" : ":" + quant);
}

bool is_address(std::string_view text) {
  return text.find("://") != text.npos || text.starts_with("hf.co/") || text.starts_with("huggingface.co/");
}

Result<ModelAddress> parse_address(std::string_view text) {
  const std::string endpoint = hub_endpoint() + "/";
  for (const std::string_view site : {std::string_view("hf://"), std::string_view("https://hf.co/"),
                                      std::string_view("hf.co/"), std::string_view("https://huggingface.co/"),
                                      std::string_view("huggingface.co/"), std::string_view(endpoint)})
    if (text.starts_with(site)) return of_repository(text, text.substr(site.size()));
  auto url = Url::parse(text);
  if (!url) return url.error();
  if (!is_gguf(decoded(url->path)) || !is_safe_path(decoded(url->path).substr(1)))
    return no_address(url->shown(), "it does not name a .gguf file");
  ModelAddress a;
  a.url = url->whole();
  return a;
}

std::string hub_endpoint() {
  std::string e = environment_variable("HF_ENDPOINT");
  while (e.ends_with('/')) e.pop_back();
  return e.empty() ? "https://huggingface.co" : e;
}

std::string url_path(std::string_view path) {
  constexpr std::string_view kKept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string out;
  for (char c : path)
    if (kKept.find(c) != kKept.npos) out += c;
    else out += format("%{:02X}", uint8_t(c));
  return out;
}

}  // namespace gimbal
