// What the engine does that a user must or may know: fallbacks, progress, recovery. The engine prints
// nothing; each front end words these for its users.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "discovery/registry.h"

namespace gimbal {

// Something better or asked for that is not used. Each one must be shown to the user.
struct Fallback {
  enum Kind {
    Device,   // `what` was asked for and cannot be had; `instead` is used
    Refused,  // the device `what` was opened, and is not used: it computes wrong, was lost, or has no memory
    Kernel,   // the kernel `what` gives wrong numbers on this machine
    Layers,   // `what`: "the embedding and layers 0 to 3 on cpu:0", in place of the device that was asked for
    Weights,  // `what`: the packed weights 'FILE', in place of which the model's file is read
  } kind;
  std::string what;
  std::string instead;  // the id of a device; empty where it is not known yet
  Error why;
};

namespace event {

// A device was chosen.
struct Chosen {
  const OpenedDevice& opened;
  bool automatic;  // no backend was asked for by name
};

// A setting that has no effect on this device or in this build, or less than was asked for.
struct Unfulfilled {
  const char* field;  // of EngineOptions: "gpu_layers"
  std::string value;
  std::string message;  // what holds in its place: "no GPU is used: all layers run on the CPU"
  bool permission;      // it only allowed something: there is nothing to complain of
};

// More positions than the model was trained for.
struct LongContext {
  int context, trained;
};

// Something that takes long. Answering false cancels it (Code::Failed).
struct Progress {
  enum Stage { Verifying, Measuring, Loading } stage;
  std::string device;
  uint64_t done, total;  // kernels when verifying, products when measuring, bytes when loading
};

// What was verified cannot be kept for the next start.
struct NotKept {
  Error why;
};

// A sequence goes on on another device, with the tokens it has; or embedding does, with the next text.
struct Recovered {
  std::string from, to;  // ids of devices
  std::string behind;    // what was done before: "12 tokens", "3 of 7 texts"
  Error why;
};

// Nothing is drafted any more (engine/drafts.h): the texts stay the same, and take longer.
struct DraftsEnded {
  Error why;
};

}  // namespace event

using Event = std::variant<Fallback, event::Chosen, event::Unfulfilled, event::LongContext, event::Progress,
                           event::NotKept, event::Recovered, event::DraftsEnded>;

// Called from the thread that called the engine. The answer counts for Progress only. May be empty.
using EventSink = std::function<bool(const Event&)>;

}  // namespace gimbal
