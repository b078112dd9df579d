// Shared by the two halves of Pull: resolving (pull.cpp) and fetching (fetch_file.cpp).
#pragma once
#include <optional>

#include "fetch/hub.h"
#include "fetch/pull.h"
#include "fetch/remote_file.h"

namespace gimbal {

class PartFile;

class PatientWatch final : public Patience {
 public:
  explicit PatientWatch(PullWatch& w) : watch(w) {}
  bool go_on() override { return watch.on({PullEvent::Progress, "", 0, 0}); }
  PullWatch& watch;
};

struct Pull::Impl {
  Impl(PullOptions o, PullWatch& w) : options(std::move(o)), patience(w) {}

  PullOptions options;
  PatientWatch patience;
  std::unique_ptr<Http> http;
  ModelAddress address;
  Credential credential;
  std::optional<Hub> hub;
  std::string commit;
  std::vector<PullFile> files;

  PullWatch& watch() const { return patience.watch; }
  Status resolve_hub();
  Status resolve_url();
  std::string url_of(const PullFile&) const;
  Result<Located> locate(const PullFile&) const;
  Result<FileLock> lock(const PullFile&);
  Status fetch(PullFile&);
  Status fill(const PullFile&, const Located&, PartFile&);
  Status check(const PullFile&, PartFile&);
};

}  // namespace gimbal
