// The slots of GET /slots: a number for each text that a model computes now, the lowest that is free.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal::api {

// Free again when its last owner lets it go.
struct Slot {
  int number = 0;
  uint64_t task = 0;  // the request's id
  int prompt_tokens = 0, max_tokens = -1;
  std::atomic<int> told = 0;  // tokens of the answer so far
  std::vector<Token> text;  // of prompt and answer so far, if Slots::keeps_texts(); for one thread at a time
};
using SlotPtr = std::shared_ptr<Slot>;

// Thread-safe.
class Slots {
 public:
  // Keeps the last text of each slot from now on. Call it before the first text.
  void keep_texts() { state_->keeps = true; }
  bool keeps_texts() const { return state_->keeps; }

  SlotPtr take(const std::string& model, uint64_t task, int prompt_tokens, int max_tokens);
  // By rising number.
  std::vector<SlotPtr> taken(const std::string& model);
  // The text that ended last in this slot; empty: none.
  std::vector<Token> last_text(const std::string& model, int number);
  void set_last_text(const std::string& model, int number, std::vector<Token> text);

 private:
  struct Place {
    std::weak_ptr<Slot> now;
    std::vector<Token> last;
  };
  struct State {
    std::atomic<bool> keeps = false;
    std::mutex mutex;
    std::map<std::string, std::vector<Place>> models;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace gimbal::api
