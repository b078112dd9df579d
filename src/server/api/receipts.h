// The receipts of answers, by answer id: the recent ones in memory, and those with certificates in a folder,
// too.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace gimbal::api {

// A folder with the receipts of answers that have certificates: DIR/OWNER/ID.json. A thread of its own writes
// them, so no answer waits for a disk. They outlive the server; the operator removes them.
class CertificateFolder {
 public:
  // Makes the folder, for its user alone, if it is missing. `failed` gets the error of each receipt that is
  // not written, from the writing thread or keep(). Errors: Failed, with the system's reason, if no file can
  // be written there.
  static Result<std::unique_ptr<CertificateFolder>> open(std::string folder,
                                                         std::function<void(const Error&)> failed);
  ~CertificateFolder();  // after all waiting receipts are written

  // Returns at once. Texts beyond kMostWaiting bytes that the disk has not taken yet are dropped and
  // reported.
  void keep(const std::string& owner, const std::string& id, std::string text);
  // Empty: there is none of this owner, or `id` is no id.
  std::string find(const std::string& owner, const std::string& id) const;

 private:
  static constexpr size_t kMostWaiting = 64 << 20;
  struct Waiting {
    std::string path, text;
  };

  CertificateFolder(std::string folder, std::function<void(const Error&)> failed);
  std::string path_of(const std::string& owner, const std::string& id) const;
  void write();

  const std::string folder_;
  const std::function<void(const Error&)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  size_t bytes_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

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
