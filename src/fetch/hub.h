// Hugging Face, or a site with the same API: the contents of repositories, the URLs of files and the
// meaning of error responses.
#pragma once
#include <string>
#include <vector>

#include "fetch/choice.h"
#include "fetch/http.h"

namespace gimbal {

struct HubFile : RemoteName {
  std::string sha256;  // 64 digits; empty if the site gives none
  std::string blob;    // its name in the cache: the sha256, or git's hash
};

struct HubRevision {
  std::string commit;
  std::vector<HubFile> files;
};

class Hub {
 public:
  // Uses $HF_ENDPOINT and the user's token. Errors: Usage for an invalid endpoint or token, or if
  // HF_HUB_OFFLINE is set.
  static Result<Hub> open();

  // Errors: refused(); Failed for an invalid response.
  Result<HubRevision> revision(Http&, const ModelAddress&) const;
  std::string file_url(const ModelAddress&, const std::string& commit, const std::string& path) const;
  const Credential& credential() const { return credential_; }

 private:
  Hub() = default;
  std::string endpoint_;
  Credential credential_;
};

// HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file that `hf auth login` writes; empty: no token. Errors: Usage
// for text that is not a token. No message contains it.
Result<std::string> hub_token();

// Explains an error status, with a remedy. `what`: the address as the user typed it; `token`: whether one
// was sent. The headers hold Hugging Face's own explanation.
Error refused(const HttpAnswer&, const std::string& what, bool token);

}  // namespace gimbal
