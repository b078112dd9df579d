// Words to people: results on stdout, everything else on stderr, colour and progress only where a person
// looks.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// Writes to stdout, through a buffer. flush_output() tells whether all of it arrived so far.
void print(std::string_view text);
bool flush_output();
// True when the reader of stdout has gone away (as in `gimbal ... | head`): then nobody wants an error
// message either.
bool reader_gone();

// One line on stderr.
void note(std::string_view text);
// From here on, each note is an object of JSON with its time. Before other threads are started.
void note_as_json(std::string (*line)(const std::string& text));
// A line that nobody must wait for, its end included, at most 4096 bytes: where the reader of stderr is slow
// it is left out, and their number is told later. From any thread.
void log_to_stderr(std::string_view line);

// Colours for stdout; the text alone when it is not a terminal or NO_COLOR is set.
std::string bold(std::string_view text);
std::string dim(std::string_view text);

// Text out of a file or a model made harmless for a terminal: what acts_on_terminals() and bytes that are not
// UTF-8 become \xNN. `lines`: newlines and tabs stay.
std::string printable(std::string_view text, bool lines = false);
// The same, cut to at most `columns` characters with "..." at the end.
std::string shortened(std::string_view text, size_t columns);

// Columns as wide as they need to be. `align`: one of 'l' and 'r' per column.
class Table {
 public:
  explicit Table(std::string align) : align_(std::move(align)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(const std::string& indent = "") const;

 private:
  std::string align_;
  std::vector<std::vector<std::string>> rows_;
};

// A bar on stderr while something long is done; silent unless stderr is a terminal and it takes more than a
// moment. Where Ctrl-C ends the program, the bar goes first. One at a time.
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

}  // namespace gimbal
