#include "server/api/receipts.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal::api {

void Receipts::keep(std::string id, std::string owner, std::string text, bool has_certificate) {
  if (folder_ && has_certificate) folder_->keep(owner, id, text);
  const std::lock_guard lock(mutex_);
  bytes_ += text.size();
  kept_.push_back({std::move(id), std::move(owner), std::move(text)});
  for (; kept_.size() > kMost || (bytes_ > kMostBytes && kept_.size() > 1); kept_.pop_front())
    bytes_ -= kept_.front().text.size();
}

std::string Receipts::find(const std::string& id, const std::string& owner) {
  {
    const std::lock_guard lock(mutex_);
    for (const Kept& k : kept_)
      if (k.id == id && k.owner == owner) return k.text;
  }
  return folder_ ? folder_->find(owner, id) : std::string();
}

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = 64 << 20;  // of a receipt that is read

// Ids come from clients, and become names of files.
bool is_name(const std::string& s) {
  return !s.empty() && s.size() <= 100 && std::all_of(s.begin(), s.end(), [](char c) {
    return std::isalnum(uint8_t(c)) || c == '-' || c == '_';
  });
}

Status make_private(const std::string& folder) {
  std::error_code e;
  if (fs::is_directory(folder, e)) return Done{};
  fs::create_directories(folder, e);
  if (!e) fs::permissions(folder, fs::perms::owner_all, e);
  if (e) return Error{Code::Failed, format("{} cannot be made: {}", gimbal::quoted(folder), e.message()), ""};
  return Done{};
}

}  // namespace

Result<std::unique_ptr<CertificateFolder>> CertificateFolder::open(std::string folder,
                                                                   std::function<void(const Error&)> failed) {
  if (auto ok = make_private(folder); !ok) return ok.error();
  const std::string trial = folder + "/.trial";
  if (auto ok = replace_file(trial, ""); !ok) return ok.error();
  std::error_code ignored;
  fs::remove(trial, ignored);
  return std::unique_ptr<CertificateFolder>(new CertificateFolder(std::move(folder), std::move(failed)));
}

CertificateFolder::CertificateFolder(std::string folder, std::function<void(const Error&)> failed)
    : folder_(std::move(folder)), failed_(std::move(failed)), thread_([this] { write(); }) {}

CertificateFolder::~CertificateFolder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string CertificateFolder::path_of(const std::string& owner, const std::string& id) const {
  return folder_ + "/" + owner + "/" + id + ".json";
}

void CertificateFolder::keep(const std::string& owner, const std::string& id, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ + text.size() <= kMostWaiting) {
      bytes_ += text.size();
      waiting_.push_back({path_of(owner, id), std::move(text)});
      changed_.notify_all();
      return;
    }
  }
  failed_({Code::Failed,
           format("{}: the disk is too slow, so the certificate of {} is not stored", gimbal::quoted(folder_),
                  id),
           ""});
}

std::string CertificateFolder::find(const std::string& owner, const std::string& id) const {
  if (!is_name(owner) || !is_name(id)) return {};
  auto text = read_file(path_of(owner, id), kMaxBytes);
  return text ? std::move(*text) : std::string();
}

void CertificateFolder::write() {
  for (;;) {
    Waiting next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Status ok = make_private(fs::path(next.path).parent_path());
    if (ok) ok = replace_file(next.path, next.text);
    if (!ok) failed_(ok.error());
    const std::lock_guard lock(mutex_);
    bytes_ -= next.text.size();
  }
}

}  // namespace gimbal::api
