#include "apps/commands/chat_loop.h"

#include <utility>

#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/keyboard.h"
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
    "/image FILE      shows the model a picture with the next question\n  "
    "/stats           speed, memory and kernels of the last answer\n  /explain         which device computes "
    "the answers, and why\n  /quit            leaves, as Ctrl-D does; Ctrl-C stops an answer\n  Several "
    "lines: paste them, end a line with \\, or write them between lines of \"\"\".\n";

std::string shown(std::string_view text) {
  return stdout_is_terminal() ? printable(text, true) : std::string(text);
}

}  // namespace

int ChatLoop::run() {
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

bool ChatLoop::ask(std::string question) {
  conversation_.ask(std::exchange(pictures_, "") + std::move(question));
  return answer();
}

// One line; or several, between lines of """, after lines that end with a backslash, or pasted at once.
std::optional<std::string> ChatLoop::read_message(LineEditor& editor) {
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

bool ChatLoop::answer() {
  bool thinking = false, anything = false;
  const int columns = look_.wrap && stdout_is_terminal() ? terminal_columns() : 0;
  WordWrap thoughts(columns), words(columns);
  std::optional<SilentKeys> silent(std::in_place);
  auto a = answers_.answer(conversation_, [&](std::string_view reasoning, std::string_view text) {
    if (!reasoning.empty() && look_.shows_reasoning) {
      print(dim(thoughts.push(shown(reasoning))));
      thinking = true;
    }
    if (!text.empty() && thinking) print(dim(thoughts.finish()) + "\n\n"), thinking = false;
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
  for (const std::string& line : a->before) note(line);
  if (a->stopped) {
    conversation_.undo();
    note("(stopped; the question is forgotten)");
    return false;
  }
  conversation_.answer(a->text, a->reasoning);
  last_stats_ = a->stats;
  if (look_.stats) note(last_stats_);
  for (const std::string& line : a->after) note(line);
  return true;
}

void ChatLoop::command(const std::string& line) {
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
  else if (name == "/image") rest.empty() ? print("/image needs a file\n") : picture(rest);
  else if (name == "/stats") print(last_stats_.empty() ? "there is no answer yet\n" : last_stats_);
  else if (name == "/explain") print(answers_.explanation());
  else print(format("there is no command {}; /help lists them\n", gimbal::quoted(name)));
}

void ChatLoop::system(const std::string& text) {
  if (!text.empty()) conversation_.set_system(text);
  const std::string now = conversation_.system();
  print(now.empty() ? "there is no system prompt\n" : format("system prompt: {}\n", printable(now, true)));
}

Result<std::string> ChatAnswers::picture(const std::string&) {
  return Error{Code::Usage, "this model does not see pictures", "give its projector file as 'mmproj'"};
}

void ChatLoop::picture(const std::string& path) {
  auto mark = answers_.picture(path);
  if (!mark) {
    const Error e = worded(mark.error());
    return note(format("error: {}{}{}", printable(e.message, true), e.remedy.empty() ? "" : "\n  ",
                       printable(e.remedy, true)));
  }
  pictures_ += *mark;
  print(format("{} goes with the next question\n", gimbal::quoted(path)));
}

void ChatLoop::undo() {
  const auto question = conversation_.undo();
  print(question ? format("forgotten: {}\n", shortened(*question, 60)) : "there is nothing to undo\n");
}

void ChatLoop::file(bool saves, const std::string& path) {
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

}  // namespace gimbal
