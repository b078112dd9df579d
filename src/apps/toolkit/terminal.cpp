#include "apps/toolkit/terminal.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/bytes.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"

namespace gimbal {
namespace {

std::string (*note_line)(const std::string&) = nullptr;
int first_error = 0;  // errno of the first write to stdout that failed
std::mutex output;
std::string pending;  // of stdout
constexpr size_t kMostPending = 1 << 16;

// Not through stdio, which loses pending data when a signal arrives. After the first Ctrl-C, which ends the
// generation, the text so far must still arrive; the second one ends the program, even here.
void write_pending() {
  for (std::string_view rest = pending; !rest.empty() && !first_error;) {
    const ssize_t n = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (n > 0) rest.remove_prefix(size_t(n));
    else if (n == 0 || errno != EINTR) first_error = n ? errno : EIO;
  }
  pending.clear();
}

bool colour() {
  static const bool on = [] {
    const char* term = std::getenv("TERM");
    const char* no = std::getenv("NO_COLOR");
    return stdout_is_terminal() && !(no && *no) && term && std::string_view(term) != "dumb";
  }();
  return on;
}

// Characters, counted as terminals mostly show them: every code point one column wide.
size_t width(std::string_view text) {
  size_t n = 0;
  bool colour = false;  // inside of \033[1m: no column
  for (char c : text) {
    colour = colour || c == '\033';
    n += !colour && (uint8_t(c) & 0xc0) != 0x80;
    colour = colour && c != 'm';
  }
  return n;
}

constexpr char kClearLine[] = "\r\033[K";

// In a signal handler: it was installed for one signal, so the second one, sent here, ends the program as
// usual.
void clear_line_and_end(int signal) {
  (void)!::write(STDERR_FILENO, kClearLine, sizeof kClearLine - 1);
  std::raise(signal);
}

bool ends_the_program(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
}

}  // namespace

bool stdin_is_terminal() { return isatty(STDIN_FILENO); }
bool stdout_is_terminal() {
  static const bool yes = isatty(STDOUT_FILENO);
  return yes;
}
bool stderr_is_terminal() {
  static const bool yes = isatty(STDERR_FILENO);
  return yes;
}

void print(std::string_view text) {
  const std::lock_guard lock(output);
  pending += text;
  if (stdout_is_terminal() || pending.size() > kMostPending) write_pending();
}

bool flush_output() {
  const std::lock_guard lock(output);
  write_pending();
  errno = first_error;
  return first_error == 0;
}

bool reader_gone() { return first_error == EPIPE; }

void note_as_json(std::string (*line)(const std::string& text)) { note_line = line; }

void note(std::string_view text) {
  const std::string line = note_line ? note_line(std::string(text)) : std::string(text) + "\n";
  fwrite(line.data(), 1, line.size(), stderr);
}

void log_to_stderr(std::string_view line) {
  static std::mutex mutex;
  static uint64_t lost = 0;
  const std::lock_guard lock(mutex);
  pollfd err{STDERR_FILENO, POLLOUT, 0};
  // A pipe that can be written to takes a page without waiting.
  if (poll(&err, 1, 0) != 1 || !(err.revents & POLLOUT)) {
    lost++;
    return;
  }
  if (lost)
    return note(format("{} lines of the log were lost: they were not read", std::exchange(lost, 0) + 1));
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

std::string bold(std::string_view text) {
  return colour() ? format("\033[1m{}\033[0m", text) : std::string(text);
}
std::string dim(std::string_view text) {
  return colour() ? format("\033[2m{}\033[0m", text) : std::string(text);
}

std::string printable(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const std::string_view c = text.substr(at, step.bytes);
    // Within running text, joiners belong to words and to emoji.
    const bool joins = lines && (c == "\u200c" || c == "\u200d");
    if (lines && (c == "\n" || c == "\t")) out += c;
    else if (step.kind == Utf8Step::Whole && (joins || !acts_on_terminals(c))) out += c;
    else if (c == "\n") out += "\\n";
    else if (c == "\t") out += "\\t";
    else out += escaped(c);
    at += step.bytes;
  }
  return out;
}

std::string shortened(std::string_view text, size_t columns) {
  // One column is at most 4 bytes long; no need to look at a megabyte for 60 columns of it.
  std::string all = printable(text.substr(0, columns * 4 + 4));
  if (width(all) <= columns) return all;
  size_t at = 0;
  for (size_t n = 0; at < all.size(); at++)
    if ((uint8_t(all[at]) & 0xc0) != 0x80 && n++ == columns - 3) break;
  return all.substr(0, at) + "...";
}

std::string Table::text(const std::string& indent) const {
  std::vector<size_t> widest(align_.size(), 0);
  for (const auto& r : rows_)
    for (size_t i = 0; i < r.size() && i < widest.size(); i++) widest[i] = std::max(widest[i], width(r[i]));
  std::string out;
  for (const auto& r : rows_) {
    std::string line = indent;
    for (size_t i = 0; i < r.size(); i++) {
      const std::string space(i < widest.size() ? widest[i] - width(r[i]) : 0, ' ');
      line += align_[i] == 'r' ? space + r[i] : r[i] + space;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

Progress::Progress(std::string what, bool wanted, Unit unit)
    : what_(std::move(what)),
      unit_(unit),
      wanted_(wanted && stderr_is_terminal()),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

Progress::~Progress() {
  if (shown_) fputs(kClearLine, stderr);
  if (guarded_) std::signal(SIGINT, SIG_DFL);
}

void Progress::update(uint64_t done, uint64_t total) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || total == 0 || now - begin_ < (unit_ == Unit::Tokens ? 1000ms : 200ms) ||
      (shown_ && now - last_ < 50ms))
    return;
  last_ = now;
  if (!std::exchange(shown_, true) && ends_the_program(SIGINT)) {
    struct sigaction action {};
    action.sa_handler = clear_line_and_end;
    action.sa_flags = SA_RESETHAND;
    guarded_ = sigaction(SIGINT, &action, nullptr) == 0;
  }
  constexpr size_t kCells = 30;
  const auto full = size_t(double(done) / double(total) * kCells);
  const std::string amount = unit_ == Unit::Bytes ? format("{} of {}", human_bytes(done), human_bytes(total))
                                                  : format("{} of {} {}", done, total,
                                                           unit_ == Unit::Kernels ? "kernels" : "tokens");
  const std::string line =
      format("\r{} [{}{}] {:3.0f} %  {}\033[K", what_, std::string(full, '#'),
             std::string(kCells - std::min(full, kCells), '.'), 100.0 * double(done) / double(total), amount);
  fwrite(line.data(), 1, line.size(), stderr);
}

namespace {

// Characters that a terminal would act on as \uNNNN, which means the same. Outside of strings JSON has none
// of them but newlines; inside, control characters below 0x20 are escaped already.
std::string harmless(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    const size_t bytes = utf8_step(json, at).bytes;
    const std::string_view c = std::string_view(json).substr(at, bytes);
    at += bytes;
    if (c == "\n" || !acts_on_terminals(c)) {
      out += c;
      continue;
    }
    uint32_t code = uint8_t(c[0]);
    if (bytes == 2) code = (code & 0x1f) << 6 | (uint8_t(c[1]) & 0x3f);
    if (bytes == 3) code = (code & 0xf) << 12 | (uint8_t(c[1]) & 0x3fu) << 6 | (uint8_t(c[2]) & 0x3fu);
    out += format("\\u{:04x}", code);
  }
  return out;
}

}  // namespace

void print_json(const Json& j, bool one_line) {
  print(harmless(j.dump(one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace)));
  print("\n");
}

}  // namespace gimbal
