// One line after the other from stdin: on a terminal with a prompt, and with editing and history where the
// build has libedit (cmake/line_editing.cmake).
#pragma once
#include <memory>
#include <optional>
#include <string>

namespace gimbal {

class LineEditor {
 public:
  explicit LineEditor(const char* prompt);
  ~LineEditor();
  // Without the newline. nullopt at the end of input (Ctrl-D), and when Ctrl-C interrupted it (see
  // InterruptGuard).
  std::optional<std::string> read();
  std::optional<std::string> read(const char* prompt);  // another one, for this line
  // On a terminal: more was typed already, as when several lines are pasted.
  bool more_waits() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal
