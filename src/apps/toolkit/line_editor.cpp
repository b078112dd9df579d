#include "apps/toolkit/line_editor.h"

#include <poll.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <utility>

#include "apps/toolkit/terminal.h"

namespace gimbal {
namespace {

std::optional<std::string> plain_line() {
  std::string line;
  for (int c; (c = std::getchar()) != '\n';) {
    if (c == EOF) {
      const bool failed = std::ferror(stdin);  // Ctrl-C
      std::clearerr(stdin);
      if (line.empty() || failed) return std::nullopt;
      break;
    }
    line += char(c);
  }
  return line;
}

}  // namespace

bool LineEditor::more_waits() const {
  pollfd p{STDIN_FILENO, POLLIN, 0};
  return stdin_is_terminal() && poll(&p, 1, 20) > 0 && (p.revents & POLLIN);
}

}  // namespace gimbal

#if GIMBAL_HAS_LIBEDIT
#include <histedit.h>

namespace gimbal {

struct LineEditor::Impl {
  EditLine* line;
  History* history;
  const char* prompt;
};

LineEditor::LineEditor(const char* prompt) : impl_(std::make_unique<Impl>()) {
  std::setlocale(LC_CTYPE, "");  // or it would edit bytes, not characters
  impl_->prompt = prompt;
  impl_->line = nullptr;
  if (!stdin_is_terminal()) return;
  impl_->line = el_init("gimbal", stdin, stdout, stderr);
  impl_->history = history_init();
  HistEvent event;
  history(impl_->history, &event, H_SETSIZE, 500);
  history(impl_->history, &event, H_SETUNIQUE, 1);
  el_set(impl_->line, EL_CLIENTDATA, impl_.get());
  el_set(
      impl_->line, EL_PROMPT, +[](EditLine* e) {
        Impl* self = nullptr;
        el_get(e, EL_CLIENTDATA, &self);
        return const_cast<char*>(self->prompt);
      });
  el_set(impl_->line, EL_EDITOR, "emacs");
  el_set(impl_->line, EL_HIST, ::history, impl_->history);
  el_source(impl_->line, nullptr);  // the user's own ~/.editrc
}

LineEditor::~LineEditor() {
  if (!impl_->line) return;
  history_end(impl_->history);
  el_end(impl_->line);
}

std::optional<std::string> LineEditor::read() {
  if (!impl_->line) return plain_line();
  // Before the prompt is shown: a key that follows the prompt at once would else be taken by the terminal's
  // own line discipline, and Ctrl-D be lost.
  el_set(impl_->line, EL_PREP_TERM, 1);
  int length = 0;
  const char* text = el_gets(impl_->line, &length);
  if (!text || length <= 0) return std::nullopt;
  std::string line(text, size_t(length));
  if (line.back() == '\n') line.pop_back();
  HistEvent event;
  if (!line.empty()) history(impl_->history, &event, H_ENTER, line.c_str());
  return line;
}

}  // namespace gimbal

#else

namespace gimbal {

struct LineEditor::Impl {
  const char* prompt;
};

LineEditor::LineEditor(const char* prompt) : impl_(std::make_unique<Impl>(Impl{prompt})) {}
LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read() {
  if (stdin_is_terminal()) print(impl_->prompt), flush_output();
  return plain_line();
}

}  // namespace gimbal
#endif

namespace gimbal {

std::optional<std::string> LineEditor::read(const char* prompt) {
  const char* usual = std::exchange(impl_->prompt, prompt);
  auto line = read();
  impl_->prompt = usual;
  return line;
}

}  // namespace gimbal
