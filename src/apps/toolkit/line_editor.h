// Reads lines from stdin. On a terminal it shows a prompt, with editing and history if the build has
// libedit (cmake/line_editing.cmake).
#pragma once
#include <memory>
#include <optional>
#include <string>

namespace gimbal {

class LineEditor {
 public:
  explicit LineEditor(const char* prompt);
  ~LineEditor();
  // Without the newline. nullopt at the end of input (Ctrl-D), or if Ctrl-C interrupted it (see
  // InterruptGuard).
  std::optional<std::string> read();
  std::optional<std::string> read(const char* prompt);  // with another prompt
  // On a terminal: more input is pending, for example pasted lines.
  bool more_waits() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal
