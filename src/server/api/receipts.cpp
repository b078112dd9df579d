#include "server/api/receipts.h"

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

}  // namespace gimbal::api
