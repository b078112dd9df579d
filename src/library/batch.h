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
    int prompt_tokens = 0;
    // With TextOptions::certificate: the request, and all of its tokens, also those behind a sink's end.
    struct Certified {
      std::vector<Token> prompt, tokens;
      gimbal::TextSettings settings;
      std::string grammar;
      std::vector<std::string> rows;
    };
    std::optional<Certified> certified;
    double submitted = 0, first_token = 0;  // now()
    uint64_t id = 0;
    std::function<void()> on_end;
    bool stopped = false;  // by its sink, or after its single tool call
    bool ended = false;    // under `mutex`
  };
  using TextPtr = std::shared_ptr<Text>;

  // `options`: those that are not in the settings.
  Result<uint64_t> submit(TextPtr, const Inputs& prompt, gimbal::TextSettings, const TextOptions& options,
                          std::string grammar);
  // Adds finalized text; false: the text is to stop.
  bool add(Text&, std::string_view text, Token token, bool last);
  void token(Text&, const TokenEvent&);
  static void scored(Text&, const TokenEvent&);
  void end(Text&, const GenerationEnd&);
  void has_ended(Text&);
  Result<TextPtr> wait(uint64_t id);

  const std::shared_ptr<Model::Impl> model;
  LoadedModelPtr on;  // replaced when a device is lost
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, TextPtr> texts;
  std::unique_ptr<SchedulerThread> scheduler;

  Result<uint64_t> submit(const Inputs& prompt, const TextOptions&, TextSink);
};

}  // namespace gimbal::v1
