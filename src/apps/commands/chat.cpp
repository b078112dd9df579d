#include "apps/commands/chat.h"

#include <unistd.h>

#include "apps/commands/chat_answer.h"
#include "apps/commands/kept_prompt.h"
#include "apps/reports/prompt_progress.h"
#include "apps/reports/run_report.h"
#include "apps/reports/tell.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/input_text.h"
#include "apps/toolkit/interrupt.h"
#include "apps/toolkit/line_editor.h"
#include "apps/toolkit/silent_keys.h"
#include "apps/toolkit/terminal.h"
#include "apps/toolkit/word_wrap.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr const char* kHelp =
    "  /system [TEXT]   shows the system prompt, or sets it\n  /clear           forgets the conversation, "
    "but not the system prompt\n  /undo            forgets the last question and its answer\n  /regen        "
    "   generates the last answer again\n  /save FILE       writes the conversation; /load FILE reads it\n  "
    "/stats           speed, memory and kernels of the last answer\n  /explain         which device computes "
    "the answers, and why\n  /quit            leaves, as Ctrl-D does; Ctrl-C stops an answer\n  Several "
    "lines: paste them, end a line with \\, or write them between lines of \"\"\".\n";

class Chat {
 public:
  Chat(Engine& engine, LoadedModelPtr loaded, const Tokenizer& tokenizer, const ChatTemplate& chat,
       const ChatSettings& settings, Session& session)
      : loaded_(std::move(loaded)),
        tokenizer_(tokenizer),
        template_(chat),
        settings_(settings),
        session_(session),
        kept_(settings.prompt_cache, settings.quiet) {
    conversation_.set_system(settings.system);
    session_.on_device_lost(engine.on_device_lost(loaded_));
  }

  int run() {
    LineEditor editor("> ");
    for (;;) {
      guard_.rearm();
      const auto message = read_message(editor);
      if (!message && InterruptGuard::interrupted()) {
        note("\n(/quit or Ctrl-D leaves)");
        continue;
      }
      if (!message || *message == "/quit" || *message == "/exit" || *message == "/bye") {
        if (!message && stdin_is_terminal()) print("\n");
        return flush_output() ? kDone : kFailed;
      }
      if (message->starts_with('/')) command(*message);
      else if (!message->empty()) ask(*message);
      if (!flush_output()) return kFailed;
    }
  }

  // Restores the file of --prompt-cache. Called before the first question.
  Status restore() { return kept_.restore(*loaded_, session_); }

  // Writes one answer; false on failure.
  bool ask(std::string question) {
    conversation_.ask(std::move(question));
    return answer();
  }

 private:
  // One line; or several, between lines of """, after lines that end with a backslash, or pasted at once.
  std::optional<std::string> read_message(LineEditor& editor) {
    auto line = editor.read();
    if (!line || line->starts_with('/')) return line;
    const bool block = *line == "\"\"\"";
    std::string all = block ? "" : *line;
    while (block || all.ends_with('\\') || editor.more_waits()) {
      const bool joins = !block && all.ends_with('\\');
      if (joins) all.pop_back();
      auto next = editor.read(". ");
      if (!next) return InterruptGuard::interrupted() ? std::nullopt : std::optional(all);
      if (block && *next == "\"\"\"") break;
      if (joins || !all.empty()) all += '\n';
      all += *next;
    }
    return all;
  }

  bool answer() {
    const std::vector<ReceiptLine> before = loaded_->model->receipt();
    PromptProgress progress(!settings_.quiet);
    settings_.generate.on_prompt = [&](size_t done, size_t total) {
      if (done == total) kept_.save(*loaded_, session_);
      return progress(done, total);
    };
    bool thinking = false, anything = false;
    const int columns = settings_.wrap && stdout_is_terminal() ? terminal_columns() : 0;
    WordWrap thoughts(columns), words(columns);
    std::optional<SilentKeys> silent(std::in_place);
    auto a = answer_chat(session_, tokenizer_, template_, conversation_, settings_,
                         [&](std::string_view reasoning, std::string_view text) {
                           if (!reasoning.empty() && settings_.think != "hide") {
                             print(dim(thoughts.push(shown(reasoning))));
                             thinking = true;
                           }
                           if (!text.empty() && thinking)
                             print(dim(thoughts.finish()) + "\n\n"), thinking = false;
                           print(words.push(shown(text)));
                           anything |= !text.empty();
                           return flush_output() && !InterruptGuard::interrupted();
                         });
    if (thinking) print(dim(thoughts.finish()));
    print(words.finish());
    if (anything || thinking || stdout_is_terminal()) print("\n");
    flush_output();
    silent.reset();
    if (!a) {
      const Error e = worded(a.error());
      note(format("error: {}{}{}", printable(e.message, true), e.remedy.empty() ? "" : "\n  ",
                  printable(e.remedy, true)));
      conversation_.undo();
      return false;
    }
    if (a->dropped)
      note(format("the context was full: the {} forgotten",
                  a->dropped == 1 ? "oldest question and its answer were"
                                  : format("{} oldest questions and their answers were", a->dropped)));
    if (a->generated.tokens.empty() && a->generated.finish == Finish::Cancelled) {
      conversation_.undo();
      note("(stopped; the question is forgotten)");
      return false;
    }
    if (a->repeats)
      note(
          "(the answer repeats itself, so it was ended; --repeat-guard off lets it go on, --repeat-penalty "
          "1.1 "
          "makes it rarer)");
    conversation_.answer(a->text, a->reasoning);
    last_stats_ = run_stats(*loaded_, a->generated, settings_.generate.sampler.seed, before);
    if (settings_.stats) note(last_stats_);
    if (auto why = explain_finish(a->generated.finish, *loaded_->model); !why.empty()) note(why);
    settings_.generate.sampler.seed++;
    return true;
  }

  static std::string shown(std::string_view text) {
    return stdout_is_terminal() ? printable(text, true) : std::string(text);
  }

  void command(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space), rest = space < line.size() ? line.substr(space + 1) : "";
    if (name == "/help" || name == "/?") print(kHelp);
    else if (name == "/system") system(rest);
    else if (name == "/clear" || name == "/reset") conversation_.clear(), print("cleared\n");
    else if (name == "/undo") undo();
    else if (name == "/regen")
      conversation_.forget_answer() ? void(answer()) : print("there is no answer yet\n");
    else if (name == "/save" || name == "/load")
      rest.empty() ? print(format("{} needs a file\n", name)) : file(name == "/save", rest);
    else if (name == "/stats") print(last_stats_.empty() ? "there is no answer yet\n" : last_stats_);
    else if (name == "/explain") print(explanation());
    else print(format("there is no command {}; /help lists them\n", gimbal::quoted(name)));
  }

  void system(const std::string& text) {
    if (!text.empty()) conversation_.set_system(text);
    const std::string now = conversation_.system();
    print(now.empty() ? "there is no system prompt\n" : format("system prompt: {}\n", printable(now, true)));
  }

  void undo() {
    const auto question = conversation_.undo();
    print(question ? format("forgotten: {}\n", shortened(*question, 60)) : "there is nothing to undo\n");
  }

  void file(bool saves, const std::string& path) {
    Status done = Done{};
    if (saves) {
      done = write_file(path, conversation_.to_json());
    } else if (auto text = read_text(path); !text) {
      done = text.error();
    } else if (auto loaded = Conversation::from_json(*text); !loaded) {
      done = loaded.error();
    } else {
      conversation_ = std::move(*loaded);
    }
    if (!done) return note("error: " + printable(done.error().message));
    print(format("{} messages {} {}\n", conversation_.messages().size(), saves ? "written to" : "read from",
                 gimbal::quoted(path)));
  }

  std::string explanation() const {
    const Model& m = *loaded_->model;
    std::string out = format("{}: {}\n", m.device().id(), printable(reason_of(loaded_->opened)));
    for (const KernelCount& k : count_kernels(m.plan(), 0))
      out += format("  {:4} x {:12} {} on {}\n", k.ops, k.op, k.kernel, k.device);
    return out + format("  `gimbal explain {}` has the reason for each\n", printable(loaded_->source.name));
  }

  LoadedModelPtr loaded_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  ChatSettings settings_;
  Session& session_;
  KeptPrompt kept_;
  InterruptGuard guard_;
  Conversation conversation_;
  std::string last_stats_;
};

}  // namespace

Result<int> chat(Engine& engine, const LoadedModelPtr& loaded, const Tokenizer& tokenizer,
                 const ChatTemplate& chat_template, const ChatSettings& settings,
                 const std::optional<std::string>& question) {
  auto session = Session::create(*loaded->model);
  if (!session) return session.error();
  ChatSettings used = settings;
  // For people who sit before it: scripts get what the model writes.
  used.guard = settings.guard && !question && stdin_is_terminal() && stdout_is_terminal();
  Chat chat(engine, loaded, tokenizer, chat_template, used, **session);
  if (auto ok = chat.restore(); !ok) return ok.error();
  if (question) return chat.ask(*question) ? kDone : InterruptGuard::interrupted() ? kInterrupted : kFailed;
  if (!settings.quiet && stdout_is_terminal())
    print(format(
        "{} on {}. /help for help. Ctrl-C stops an answer, Ctrl-D leaves.\n{}",
        bold(printable(loaded->source.name)), loaded->model->device().id(),
        used.guard ? "An answer that repeats itself is ended; --repeat-guard off lets it go on.\n" : ""));
  return chat.run();
}

}  // namespace gimbal
