#include "fetch/hub.h"

#include <algorithm>

#include "base/file.h"
#include "base/folders.h"
#include "base/format.h"
#include "base/json.h"
#include "base/json_cache.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr size_t kMaxFiles = 100000;

bool is_hex(const std::string& text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool leaves_the_folder(const std::string& path) {
  return path.empty() || path[0] == '/' || ("/" + path + "/").find("/../") != path.npos ||
         std::any_of(path.begin(), path.end(), [](char c) { return uint8_t(c) < 0x20; });
}

Error senseless(const std::string& url, const char* what) {
  return {Code::Failed, format("{} returned no list of a repository's files: {}", url, what),
          "check that HF_ENDPOINT names a site with the API of Hugging Face"};
}

// Where a person reads about it.
std::string page_of(const std::string& what, const HttpAnswer& a) {
  if (!what.starts_with("hf.co/")) return a.url.shown();
  const std::string path = what.substr(6, what.find(':') - 6);
  const size_t file = path.find('/', std::min(path.find('/'), path.size() - 1) + 1);
  return hub_endpoint() + "/" + path.substr(0, file);
}

Result<HubRevision> read_revision(const std::string& url, const std::string& text) {
  const Json j = parse_json(text);
  if (!j.is_object()) return senseless(url, "it is not a JSON object");
  HubRevision r{text_in(j, "sha"), {}};
  if (!is_hex(r.commit, 40)) return senseless(url, "it names no commit");
  const auto list = j.find("siblings");
  if (list == j.end() || !list->is_array() || list->size() > kMaxFiles)
    return senseless(url, "it lists no files");
  for (const Json& s : *list) {
    HubFile f;
    f.path = text_in(s, "rfilename");
    if (leaves_the_folder(f.path)) continue;
    if (const auto size = s.find("size"); size != s.end() && size->is_number_unsigned())
      f.bytes = size->get<uint64_t>();
    f.blob = text_in(s, "blobId");
    if (const auto lfs = s.find("lfs"); lfs != s.end() && lfs->is_object()) {
      f.sha256 = text_in(*lfs, "sha256");
      if (const auto size = lfs->find("size"); size != lfs->end() && size->is_number_unsigned())
        f.bytes = size->get<uint64_t>();
    }
    if (!is_hex(f.sha256, 64)) f.sha256.clear();
    if (!f.sha256.empty()) f.blob = f.sha256;
    if (!is_hex(f.blob, 64) && !is_hex(f.blob, 40)) f.blob.clear();
    r.files.push_back(std::move(f));
  }
  return r;
}

}  // namespace

Result<std::string> hub_token() {
  std::string token;
  const char* from = "";
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (token.empty()) token = std::string(trimmed(environment_variable(from = name)));
  if (token.empty()) {
    std::string path = environment_variable(from = "HF_TOKEN_PATH");
    if (path.empty() && !hub_home_folder().empty()) path = hub_home_folder() + "/token";
    if (auto text = path.empty() ? Result<std::string>("") : read_file(path, 1 << 16))
      token = std::string(trimmed(*text));
  }
  if (std::any_of(token.begin(), token.end(), [](char c) { return uint8_t(c) <= 0x20 || uint8_t(c) > 0x7e; }))
    return Error{Code::Usage, format("{} holds no token: it has characters that tokens cannot have", from),
                 "create one at https://huggingface.co/settings/tokens, or unset it"};
  return token;
}

Result<Hub> Hub::open() {
  const std::string offline = environment_variable("HF_HUB_OFFLINE");
  if (!offline.empty() && offline != "0")
    return Error{Code::Usage, "HF_HUB_OFFLINE is set, so Hugging Face is not contacted",
                 "unset it, or name a model that is on this machine"};
  Hub hub;
  hub.endpoint_ = hub_endpoint();
  auto url = Url::parse(hub.endpoint_);
  if (!url)
    return Error{Code::Usage, format("HF_ENDPOINT is not a URL: {}", gimbal::quoted(hub.endpoint_)),
                 "give one such as https://huggingface.co"};
  auto token = hub_token();
  if (!token) return token.error();
  hub.credential_ = {std::move(*token), url->origin()};
  return hub;
}

Result<HubRevision> Hub::revision(Http& http, const ModelAddress& a) const {
  const std::string url =
      format("{}/api/models/{}/revision/{}?blobs=true", endpoint_, a.repository, a.revision);
  auto answer = http.get({.url = url, .credential = credential_});
  if (!answer) return answer.error();
  if (answer->status != 200) return refused(*answer, a.name(), !credential_.token.empty());
  return read_revision(url, answer->body);
}

std::string Hub::file_url(const ModelAddress& a, const std::string& commit, const std::string& path) const {
  return format("{}/{}/resolve/{}/{}", endpoint_, a.repository, commit, url_path(path));
}

Error refused(const HttpAnswer& a, const std::string& what, bool token) {
  const std::string code = a.header("x-error-code"), site = a.url.origin();
  std::string said = a.header("x-error-message").substr(0, 300);
  const std::string status = format("{} refuses {}: HTTP status {}{}", site, what, a.status,
                                    said.empty() ? "" : format(" ({})", escaped(said)));
  const std::string page = page_of(what, a);
  const char* kToken =
      "create a token at https://huggingface.co/settings/tokens and set HF_TOKEN to it (or run `hf auth "
      "login`)";
  // A plain URL of another site: the token of Hugging Face is never sent there.
  const auto hub = Url::parse(hub_endpoint());
  if (what.starts_with("http") && !token && !(hub && hub->origin() == site)) {
    if (a.status == 401 || a.status == 403)
      return {Code::Failed, status,
              "gimbal has no account there: open the address in a browser to see what it wants",
              reason::kDenied};
    if (a.status == 404 || a.status == 410)
      return {Code::NotFound, status, "check the spelling of the address", reason::kNoSuchModel};
  }
  const bool gated = code == "GatedRepo";
  if (gated || ((a.status == 401 || a.status == 403) && token && code != "RepoNotFound"))
    return {Code::Failed, status,
            format("{}accept the terms at {} with the account of the token{}",
                   token ? "" : format("{}; ", kToken), page,
                   token ? ", and allow the token to read gated repositories" : ""),
            reason::kDenied};
  if (code == "RepoNotFound" || (a.status == 401 && !token))
    return {
        Code::NotFound, status,
        format("check the spelling; a private one needs a token: {}", token ? "yours has no access" : kToken),
        code == "RepoNotFound" ? reason::kNoSuchModel : reason::kDenied};
  if (a.status == 404 || a.status == 410)
    return {Code::NotFound, status, "check the spelling of the owner, the repository and the file",
            reason::kNoSuchModel};
  if (a.status == 403) return {Code::Failed, status, kToken, reason::kDenied};
  if (a.status == 429) {
    const std::string wait = a.header("retry-after");
    return {Code::Failed, status,
            format("too many requests: wait {}, then run the same command again{}",
                   wait.empty() || wait.size() > 9 ? "a few minutes" : escaped(wait) + " seconds",
                   token ? "" : "; with a token in HF_TOKEN the site allows more"),
            reason::kDenied};
  }
  return {Code::Failed, status, a.status >= 500 ? "the site failed: run the same command again later" : ""};
}

}  // namespace gimbal
