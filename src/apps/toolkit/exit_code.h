// Errors as the command line reports them: exit codes for scripts, names in JSON, and words.
#pragma once
#include <string>

#include "base/result.h"

namespace gimbal {

enum Exit : int {
  kDone = 0,
  kFailed = 1,         // runtime error, or something named was not found
  kUsage = 2,          // invalid command line
  kBadModel = 3,       // the model file is malformed or unsupported
  kNoBackend = 4,      // no device satisfies the request
  kOutOfMemory = 5,    // not enough memory
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

// Rewords library errors for the command line: settings become options, and remedies become commands to
// type. Layers below src/apps/ do not know option names.

// With options in place of setting names, and remedies to type.
Error worded(const Error&);

// Replaces a setting that the library writes as 'context', in quotes, by --ctx.
std::string with_options(std::string text);

}  // namespace gimbal
