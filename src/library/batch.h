// The state of a Batch: a scheduler and its texts.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>

#include "library/internal.h"

namespace gimbal::v1 {

struct Batch::Impl {
  explicit Impl(std::shared_ptr<Model::Impl> m) : model(std::move(m)), on(model->current()) {}
  ~Impl() {
    scheduler = nullptr;  // ends all texts
    model->batch = false;
  }

  // One text. The batch's thread writes it until it has ended.
  struct Text {
    TextSink sink;
    ChatSink chat_sink;
    std::optional<ReplyState> reply;  // of a text that was submitted as messages
    Generated out;
    std::optional<Error> failed;
    bool logprobs = false;
    double submitted = 0, first_token = 0;  // now()
    uint64_t id = 0;
    bool stopped = false;  // by its sink, or after its single tool call
    bool ended = false;    // under `mutex`
  };
  using TextPtr = std::shared_ptr<Text>;

  Result<uint64_t> submit(TextPtr, std::vector<Token> prompt, gimbal::TextSettings, std::string grammar);
  // Adds finalized text; false: the text is to stop.
  bool add(Text&, std::string_view text, Token token, bool last);
  void token(Text&, const TokenTold&);
  void end(Text&, const GenerationEnd&);
  void has_ended(Text&);
  Result<TextPtr> wait(uint64_t id);

  const std::shared_ptr<Model::Impl> model;
  LoadedModelPtr on;  // replaced when a device is lost
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, TextPtr> texts;
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace gimbal::v1
