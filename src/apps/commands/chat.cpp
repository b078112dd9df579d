#include "apps/commands/chat.h"

#include "apps/commands/chat_answer.h"
#include "apps/commands/kept_prompt.h"
#include "apps/reports/prompt_progress.h"
#include "apps/reports/run_report.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// Answers of a model in this process.
class SessionAnswers final : public ChatAnswers {
 public:
  SessionAnswers(Engine& engine, LoadedModelPtr loaded, const Tokenizer& tokenizer, const ChatTemplate& chat,
                 const ChatSettings& settings, Session& session)
      : loaded_(std::move(loaded)),
        tokenizer_(tokenizer),
        template_(chat),
        settings_(settings),
        session_(session),
        kept_(settings.prompt_cache, settings.quiet) {
    session_.on_device_lost(engine.on_device_lost(loaded_));
    session_.use_store(settings_.prefix_store);
  }

  // Restores the file of --prompt-cache. Called before the first question.
  Status restore() { return kept_.restore(*loaded_, session_); }

  Result<ChatReply> answer(Conversation& conversation, const ChatSink& sink) override {
    const std::vector<ReceiptLine> before = loaded_->model->receipt();
    PromptProgress progress(!settings_.quiet);
    settings_.generate.on_prompt = [&](size_t done, size_t total) {
      if (done == total) kept_.save(*loaded_, session_);
      return progress(done, total);
    };
    auto a = answer_chat(session_, tokenizer_, template_, conversation, settings_, sink);
    if (!a) return a.error();
    ChatReply out{std::move(a->text), std::move(a->reasoning)};
    if (a->dropped)
      out.before.push_back(format("the context was full: the {} forgotten",
                                  a->dropped == 1
                                      ? "oldest question and its answer were"
                                      : format("{} oldest questions and their answers were", a->dropped)));
    out.stopped = a->generated.tokens.empty() && a->generated.finish == Finish::Cancelled;
    if (out.stopped) return out;
    if (a->repeats)
      out.before.push_back(
          "(the answer repeats itself, so it was ended; --repeat-guard off lets it go on, --repeat-penalty "
          "1.1 "
          "makes it rarer)");
    out.stats = run_stats(*loaded_, a->generated, settings_.generate.sampler.seed, before);
    if (auto why = explain_finish(a->generated.finish, *loaded_->model); !why.empty())
      out.after.push_back(std::move(why));
    settings_.generate.sampler.seed++;
    return out;
  }

  Result<std::string> picture(const std::string& file) override {
    return settings_.pictures ? settings_.pictures->add(file) : ChatAnswers::picture(file);
  }

  std::string explanation() const override {
    const Model& m = *loaded_->model;
    std::string out = format("{}: {}\n", m.device().id(), printable(reason_of(loaded_->opened)));
    for (const KernelCount& k : count_kernels(m.plan(), m.plan().bucket_for(1)))
      out += format("  {:4} x {:12} {} on {}\n", k.ops, k.op, k.kernel, k.device);
    return out + format("  `gimbal explain {}` has the reason for each\n", printable(loaded_->source.name));
  }

 private:
  LoadedModelPtr loaded_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  ChatSettings settings_;
  Session& session_;
  KeptPrompt kept_;
};

}  // namespace

Result<int> chat(Engine& engine, const LoadedModelPtr& loaded, const Tokenizer& tokenizer,
                 const ChatTemplate& chat_template, const ChatSettings& settings,
                 const std::optional<std::string>& question) {
  auto session = Session::create(*loaded->model);
  if (!session) return session.error();
  ChatSettings used = settings;
  // For people at a terminal: scripts get the model's own text.
  used.guard = settings.guard && !question && stdin_is_terminal() && stdout_is_terminal();
  SessionAnswers answers(engine, loaded, tokenizer, chat_template, used, **session);
  if (auto ok = answers.restore(); !ok) return ok.error();
  ChatLoop chat(answers, {used.shows_reasoning, used.stats, used.wrap}, used.system);
  if (!question) chat.add_pictures(used.marks);
  if (question) return chat.ask(*question) ? kDone : InterruptGuard::interrupted() ? kInterrupted : kFailed;
  if (!settings.quiet && stdout_is_terminal())
    print(format(
        "{} on {}. /help for help. Ctrl-C stops an answer, Ctrl-D leaves.\n{}",
        bold(printable(loaded->source.name)), loaded->model->device().id(),
        used.guard ? "An answer that repeats itself is ended; --repeat-guard off lets it go on.\n" : ""));
  return chat.run();
}

}  // namespace gimbal
