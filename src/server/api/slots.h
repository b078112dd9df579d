// The slots of GET /slots: a number for each text that a model computes now, the lowest that is free.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gimbal::api {

// Free again when its last owner lets it go.
struct Slot {
  int number = 0;
  uint64_t task = 0;  // the request's id
  int prompt_tokens = 0, max_tokens = -1;
  std::atomic<int> told = 0;  // tokens of the answer so far
};
using SlotPtr = std::shared_ptr<Slot>;

// Thread-safe.
class Slots {
 public:
  SlotPtr take(const std::string& model, uint64_t task, int prompt_tokens, int max_tokens);
  // By rising number.
  std::vector<SlotPtr> taken(const std::string& model);

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<std::weak_ptr<Slot>>> models_;
};

}  // namespace gimbal::api
