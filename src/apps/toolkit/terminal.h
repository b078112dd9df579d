// Terminal output: results on stdout, all else on stderr; colour and progress only on a
// terminal.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal {

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// Writes to stdout, buffered. flush_output() reports whether all output so far was written.
void print(std::string_view text);
bool flush_output();
// True if the reader of stdout has closed it (as in `gimbal ... | head`): then error messages are
// pointless.
bool reader_gone();

// One line on stderr.
void note(std::string_view text);
// Makes each later note a JSON object with its time. Call it before other threads start.
void note_as_json(std::string (*line)(const std::string& text));
// Writes a line of at most 4096 bytes, with its newline, and never blocks: drops it if the reader of stderr
// is slow, and reports the number of dropped lines later. From any thread.
void log_to_stderr(std::string_view line);

// Colours for stdout; plain text if it is not a terminal or NO_COLOR is set.
std::string bold(std::string_view text);
std::string dim(std::string_view text);

// Text from a file or model, safe for a terminal: characters for which acts_on_terminals() is true and
// invalid UTF-8 become \xNN. `lines`: keeps newlines and tabs.
std::string printable(std::string_view text, bool lines = false);
// The same, truncated to `columns` characters with "..." at the end.
std::string shortened(std::string_view text, size_t columns);

// A table with columns as wide as their content. `align`: 'l' or 'r' per column.
class Table {
 public:
  explicit Table(std::string align) : align_(std::move(align)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(const std::string& indent = "") const;

 private:
  std::string align_;
  std::vector<std::vector<std::string>> rows_;
};

// A progress bar on stderr; silent unless stderr is a terminal and the task takes more than a moment.
// Removed before Ctrl-C ends the program. One at a time.
class Progress {
 public:
  enum class Unit { Bytes, Kernels, Tokens };
  Progress(std::string what, bool wanted, Unit unit = Unit::Bytes);
  ~Progress();
  void update(uint64_t done, uint64_t total);

 private:
  std::string what_;
  Unit unit_;
  bool wanted_, shown_ = false, guarded_ = false;
  std::chrono::steady_clock::time_point begin_, last_;
};

// Indented, or on one line.
void print_json(const Json&, bool one_line = false);

}  // namespace gimbal
