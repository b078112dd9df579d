// Hugging Face, or a site that speaks as it does: what is in a repository, where its files are, and what its
// refusals mean.
#pragma once
#include <string>
#include <vector>

#include "fetch/choice.h"
#include "fetch/http.h"

namespace gimbal {

struct HubFile : RemoteName {
  std::string sha256;  // 64 digits; empty where the site tells none
  std::string blob;    // its name in the cache: the sha256, or git's own hash
};

struct HubRevision {
  std::string commit;
  std::vector<HubFile> files;
};

class Hub {
 public:
  // With $HF_ENDPOINT and the user's token. Errors: Usage for an endpoint or a token that is none, or when
  // HF_HUB_OFFLINE is set.
  static Result<Hub> open();

  // Errors: refused(); Failed for an answer that makes no sense.
  Result<HubRevision> revision(Http&, const ModelAddress&) const;
  std::string file_url(const ModelAddress&, const std::string& commit, const std::string& path) const;
  const Credential& credential() const { return credential_; }

 private:
  Hub() = default;
  std::string endpoint_;
  Credential credential_;
};

// HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file that `hf auth login` writes; empty: there is none. Errors:
// Usage for text that is no token. It is in no message.
Result<std::string> hub_token();

// What a status that is no success means, with what to do. `what`: the address as the user knows it; `token`:
// whether one was sent. Hugging Face's own words for it are in the headers.
Error refused(const HttpAnswer&, const std::string& what, bool token);

}  // namespace gimbal
