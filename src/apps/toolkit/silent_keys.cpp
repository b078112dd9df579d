#include "apps/toolkit/silent_keys.h"

#include <termios.h>
#include <unistd.h>

#include "apps/toolkit/interrupt.h"

namespace gimbal {
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
