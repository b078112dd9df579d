#include "apps/interrupt.h"

#include <csignal>

namespace gimbal {
namespace {

// A signal handler can reach nothing else.
volatile std::sig_atomic_t seen = 0;
void on_interrupt(int) { seen = 1; }

}  // namespace

void InterruptGuard::rearm() {
  seen = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND;  // without SA_RESTART: reading a line ends too
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::InterruptGuard() { rearm(); }
InterruptGuard::~InterruptGuard() { std::signal(SIGINT, SIG_DFL); }
bool InterruptGuard::interrupted() { return seen != 0; }

}  // namespace gimbal
