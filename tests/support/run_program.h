// Runs a program as a user would: no shell between, stdin given, both outputs and the exit code kept.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace gimbal::test {

struct Ran {
  int code = -1;  // 128 + the signal's number when a signal ended it
  std::string out, err;
};

struct RunSetup {
  std::string input = {};  // stdin
  std::map<std::string, std::string> environment =
      {};                             // set in addition; an empty value removes the variable
  std::string folder = {};            // to run in; empty: the present one
  std::string stdout_path = {};       // write stdout here in place of `out`
  int interrupt_after_bytes = -1;     // of stdout: then SIGINT is sent, once
  bool interrupt_when_full = false;   // SIGINT, once, while stdout is an unread pipe of 4096 bytes
  bool interrupt_when_heard = false;  // SIGINT, once, as soon as the program handles it by itself
  std::string limits = {};     // "-v 100000 -s 128": given to ulimit of a shell that becomes the program
  int close_after_bytes = -1;  // of stdout: then the reading end is closed
};

// Ends the test executable when the program cannot be started or takes more than two minutes.
Ran run_program(const std::vector<std::string>& command, const RunSetup& setup = {});

}  // namespace gimbal::test
