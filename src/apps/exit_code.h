// What the program's exit code tells a script, and the names of failures in JSON.
#pragma once
#include "base/result.h"

namespace gimbal {

enum Exit : int {
  kDone = 0,
  kFailed = 1,         // went wrong while running; something that was named is not there
  kUsage = 2,          // the command line makes no sense
  kBadModel = 3,       // the model file breaks its format, or this version cannot run it
  kNoBackend = 4,      // no device satisfies the request
  kOutOfMemory = 5,    // would not fit
  kInterrupted = 130,  // Ctrl-C, as shells report it
};

constexpr Exit exit_code(Code c) {
  switch (c) {
    case Code::Usage: return kUsage;
    case Code::Malformed:
    case Code::Unsupported: return kBadModel;
    case Code::NoBackend: return kNoBackend;
    case Code::OutOfMemory: return kOutOfMemory;
    case Code::Failed:
    case Code::NotFound:
    case Code::DeviceLost: return kFailed;
  }
  return kFailed;
}

constexpr const char* name_of(Code c) {
  switch (c) {
    case Code::Failed: return "failed";
    case Code::Usage: return "usage";
    case Code::NotFound: return "not-found";
    case Code::Malformed: return "malformed";
    case Code::Unsupported: return "unsupported";
    case Code::NoBackend: return "no-backend";
    case Code::OutOfMemory: return "out-of-memory";
    case Code::DeviceLost: return "device-lost";
  }
  return "failed";
}

}  // namespace gimbal
