#include "apps/toolkit/keyboard.h"

#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

// Ends the program on an uncaught exception. Replaces libstdc++'s function of this name, which would add a
// demangler of 47 kB. On systems without libstdc++ it is never called.
namespace __gnu_cxx {
void __verbose_terminate_handler() {
  constexpr std::string_view text =
      "error: gimbal ended because of a bug in it (an exception that nothing caught)\n";
  const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);
  std::abort();
}
}  // namespace __gnu_cxx

namespace gimbal {
namespace {

// A signal handler can reach nothing else.
volatile std::sig_atomic_t seen = 0;
void (*volatile restore_at_end)() = nullptr;

void on_interrupt(int signal) {
  if (!seen) {
    seen = 1;
    return;
  }
  if (const auto restore = restore_at_end) restore();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void InterruptGuard::rearm() {
  seen = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = 0;  // without SA_RESTART: reading a line ends too
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::InterruptGuard() { rearm(); }
InterruptGuard::~InterruptGuard() { std::signal(SIGINT, SIG_DFL); }
bool InterruptGuard::interrupted() { return seen != 0; }
void InterruptGuard::at_end(void (*restore)()) { restore_at_end = restore; }

namespace {

// For the signal handler.
termios before;
volatile bool silent = false;

void restore() {
  if (silent) tcsetattr(STDIN_FILENO, TCSANOW, &before);
  silent = false;
}

}  // namespace

SilentKeys::SilentKeys() {
  if (tcgetattr(STDIN_FILENO, &before) != 0) return;
  termios quiet = before;
  quiet.c_lflag &= ~tcflag_t(ECHO | ECHONL);
  quiet.c_lflag |= NOFLSH;
  silent = tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
  InterruptGuard::at_end(restore);
}

SilentKeys::~SilentKeys() {
  InterruptGuard::at_end(nullptr);
  restore();
}

}  // namespace gimbal
