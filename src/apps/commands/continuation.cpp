#include "apps/commands/run.h"

#include "apps/reports/prompt_progress.h"
#include "apps/reports/run_report.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/line_editor.h"
#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr const char* kHelpOfLines =
    "  a line of text   is continued by the model, as a new text\n  an empty line    continues the last "
    "text\n  /reset           forgets the last text\n";
constexpr const char* kHelpOfOneText =
    "  a line of text   is added to the text, which the model continues\n  an empty line    continues the "
    "text\n  /reset           returns to the text of the beginning\n";
constexpr const char* kHelpOfCommands =
    "  /stats           speed, memory and kernels of the last answer\n  /help            this list\n  /quit  "
    "  "
    "        leaves, as Ctrl-D does; Ctrl-C stops an answer\n";

class Continuation {
 public:
  Continuation(Engine& engine, LoadedModelPtr loaded, const Tokenizer& tokenizer,
               const ContinuationSettings& settings, Session& session)
      : loaded_(std::move(loaded)),
        tokenizer_(tokenizer),
        settings_(settings.generate),
        stats_(settings.stats),
        quiet_(settings.quiet),
        session_(session),
        first_(settings.text),
        text_(first_) {
    session_.on_device_lost(engine.on_device_lost(loaded_));
  }

  int run() {
    LineEditor editor("> ");
    for (;;) {
      guard_.rearm();
      auto line = editor.read();
      if (!line && InterruptGuard::interrupted()) {
        note("\n(/quit or Ctrl-D leaves)");
        continue;
      }
      if (!line) return print("\n"), kDone;
      if (*line == "/quit" || *line == "/exit" || *line == "/bye") return kDone;
      else if (*line == "/help" || *line == "/?")
        print(std::string(first_.empty() ? kHelpOfLines : kHelpOfOneText) + kHelpOfCommands);
      else if (*line == "/reset") forget(), print("forgotten\n");
      else if (*line == "/stats") print(last_stats_.empty() ? "nothing was generated yet\n" : last_stats_);
      else if (!line->empty() && line->front() == '/')
        print(format("there is no command {}; /help lists them\n", gimbal::quoted(*line)));
      else if (!line->empty()) begin(*line);
      else if (text_.empty()) print("type the beginning of a text, or /help\n");
      else go_on();
      if (!flush_output()) return kFailed;
    }
  }

 private:
  void forget() {
    session_.rewind(0);
    if (settings_.constraint) settings_.constraint->rewind(0);
    text_ = first_;
  }

  // A new text reuses the prefix that it shares with the text before.
  void begin(const std::string& line) {
    if (first_.empty()) text_.clear();
    const auto more = tokenizer_.encode(line, {.add_bos = text_.empty()});
    text_.insert(text_.end(), more.begin(), more.end());
    session_.keep_common(text_);
    if (settings_.constraint) settings_.constraint->rewind(0);
    answer(dim(printable(line)));
  }

  void go_on() {
    if (session_.room() == 0) {
      note("the context is full; type a new line, or start with a larger --ctx");
      return;
    }
    // The last token was generated but not computed yet, unless the text ended with a stop token.
    if (session_.position() == int(text_.size())) session_.rewind(session_.position() - 1);
    answer();
  }

  // Computes the part of text_ that the session lacks, prints `echo`, and appends the continuation.
  void answer(const std::string& echo = "") {
    const std::vector<Token> prompt(text_.begin() + session_.position(), text_.end());
    const std::vector<ReceiptLine> before = loaded_->model->receipt();
    PromptProgress progress(!quiet_);
    settings_.on_prompt = [&](size_t done, size_t total) {
      const bool go_on = progress(done, total);
      if (go_on && done == total) print(echo);
      return go_on;
    };
    std::optional<SilentKeys> silent(std::in_place);
    auto g = generate(session_, tokenizer_, prompt, settings_, [&](std::string_view text, Token) {
      print(printable(text, true));
      return flush_output() && !InterruptGuard::interrupted();
    });
    print("\n");
    flush_output();
    silent.reset();
    if (!g) {
      const Error e = worded(g.error());
      note(format("error: {}{}{}", printable(e.message, true), e.remedy.empty() ? "" : "\n  ",
                  printable(e.remedy, true)));
      forget();
      return;
    }
    text_.insert(text_.end(), g->tokens.begin(), g->tokens.end());
    last_stats_ = run_stats(*loaded_, *g, settings_.sampler.seed, before);
    if (stats_) print(dim(last_stats_));
    if (auto why = explain_finish(g->finish, *loaded_->model); !why.empty()) note(why);
    settings_.sampler.seed++;
  }

  LoadedModelPtr loaded_;
  const Tokenizer& tokenizer_;
  GenerateSettings settings_;
  const bool stats_, quiet_;
  Session& session_;
  InterruptGuard guard_;
  const std::vector<Token> first_;  // the text of the beginning; empty: each line is a new text
  std::vector<Token> text_;
  std::string last_stats_;
};

}  // namespace

Result<int> continue_texts(Engine& engine, const LoadedModelPtr& loaded, const Tokenizer& tokenizer,
                           const ContinuationSettings& settings) {
  auto session = Session::create(*loaded->model);
  if (!session) return session.error();
  if (!settings.quiet)
    print(format("{} on {}. {} /help for help.\n", bold(printable(loaded->source.name)),
                 loaded->model->device().id(),
                 settings.text.empty() ? "Each line is a text that the model continues."
                                       : "Each line is added to the text, which the model continues."));
  return Continuation(engine, loaded, tokenizer, settings, **session).run();
}

}  // namespace gimbal
