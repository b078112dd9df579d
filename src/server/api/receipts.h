// The receipts of answers, by answer id. A receipt is shown only to the key that requested its answer.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "server/api/certificate_folder.h"

namespace gimbal::api {

class Receipts {
 public:
  // The most recent ones stay in memory, up to these limits: certificates of long answers are large.
  static constexpr size_t kMost = 1000, kMostBytes = 64 << 20;

  // Those with a certificate go to this folder, too. Before the first keep().
  void keep_in(std::unique_ptr<CertificateFolder> folder) { folder_ = std::move(folder); }
  // `owner`: a word for the key of the request (Call::owner).
  void keep(std::string id, std::string owner, std::string text, bool has_certificate);
  // Empty: unknown, expired, or of another owner.
  std::string find(const std::string& id, const std::string& owner);

 private:
  struct Kept {
    std::string id, owner, text;
  };
  std::mutex mutex_;
  std::deque<Kept> kept_;
  size_t bytes_ = 0;  // of the texts
  std::unique_ptr<CertificateFolder> folder_;
};

}  // namespace gimbal::api
