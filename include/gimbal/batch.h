// Many texts at once on one model (continuous batching): each step computes the next tokens of all of them.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gimbal/chat.h"
#include "gimbal/error.h"

namespace gimbal::v1 {

struct BatchOptions {
  int queue = 256;      // texts that may wait while ModelOptions::sequences texts run
  int prompt_rows = 0;  // prompt tokens in a step that running texts wait for; 0: as many as keep it short
};

struct BatchNumbers {
  int running = 0, waiting = 0;  // texts
  uint64_t tokens_generated = 0, prompt_tokens = 0, shared_tokens = 0, steps = 0;
};

// Texts with equal beginnings share their computation. A text does not depend on the others: it has the same
// tokens as from Sequence::generate(). Owns a thread, and keeps the model alive. Thread-safe; movable.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();  // cancels the texts that run or wait

  // Queues a text and returns its id, for wait() and cancel(). The batch's thread calls the sink, which must
  // not block. Errors: Usage for options out of range and a prompt that is empty or does not fit; OutOfMemory
  // ("queue-full") when too many texts wait.
  Result<uint64_t> submit(std::string_view prompt, const TextOptions& = {}, TextSink = {});
  Result<uint64_t> submit(std::span<const Token> prompt, const TextOptions& = {}, TextSink = {});
  Result<uint64_t> submit(std::span<const Message> messages, const ChatOptions& = {}, ChatSink = {});

  // Blocks until the text has ended, and forgets its id. Errors: NotFound for an id that is not there;
  // those of the text: Usage for its grammar, NoBackend when a device was lost and no other is available.
  Result<Generated> wait(uint64_t id);
  // The same for a text that was submitted as messages.
  Result<Reply> wait_reply(uint64_t id);
  // Ends it within a step with Finish::Cancelled. Does nothing for a text that has ended.
  void cancel(uint64_t id);

  // Submits all and waits for all. Results are in the order of the prompts. Errors: the first one.
  Result<std::vector<Generated>> generate(std::span<const std::string> prompts, const TextOptions& = {});

  BatchNumbers numbers() const;

  struct Impl;

 private:
  friend struct Access;
  explicit Batch(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
