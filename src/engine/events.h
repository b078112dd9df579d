// Events of the engine that a user must or may know: fallbacks, progress, recovery. The engine prints
// nothing; each front end words them for its users.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "base/format.h"
#include "discovery/registry.h"

namespace gimbal {

// A requested or better device, kernel or file that is not used. Every fallback must be shown to the user.
struct Fallback {
  enum Kind {
    Device,   // the requested `what` is not available; `instead` is used
    Refused,  // the device `what` was opened, and is not used: wrong results, lost, or out of memory
    Kernel,   // the kernel `what` computes wrong results on this machine
    Layers,   // `what`: "the embedding and layers 0 to 3 on cpu:0", not on the requested device
    Weights,  // `what`: the packed weights 'FILE'; the model's own file is read
  } kind;
  std::string what;
  std::string instead;  // the id of a device; empty if not known yet
  Error why;
};

namespace event {

// A device was chosen.
struct Chosen {
  const OpenedDevice& opened;
  bool automatic;  // the user named no backend
};

// A setting with no effect, or less than requested, on this device or in this build.
struct Unfulfilled {
  const char* field;  // of EngineOptions: "gpu_layers"
  std::string value;
  std::string message;  // the actual behaviour: "no GPU is used: all layers run on the CPU"
  bool permission;      // it only permits something, so no warning is due
};

// More positions than the model was trained for.
struct LongContext {
  int context, trained;
};

// A model whose layers on GPUs the user counted (gpu_layers, split) was loaded.
struct Offloaded {
  int layers, of;       // on GPUs; in the model
  std::string devices;  // "vulkan:0", "cuda:0 (20) and cuda:1 (12)"; empty: none
  std::string text() const {
    return format("offloaded {}/{} layers to {}", layers, of, layers ? devices : "a GPU");
  }
};

// Progress of a long operation. Return false to cancel it (Code::Failed).
struct Progress {
  enum Stage { Verifying, Measuring, Loading } stage;
  std::string device;
  uint64_t done, total;  // kernels when verifying, products when measuring, bytes when loading
};

// The results of verification cannot be saved for the next start.
struct NotKept {
  Error why;
};

// A sequence continues on another device with its tokens, or an embedding call with its next text.
struct Recovered {
  std::string from, to;  // ids of devices
  std::string behind;    // finished before the loss: "12 tokens", "3 of 7 texts"
  Error why;
};

// Drafting has ended (engine/drafts.h). The texts stay the same but take longer.
struct DraftsEnded {
  Error why;
};

}  // namespace event

using Event = std::variant<Fallback, event::Chosen, event::Unfulfilled, event::LongContext, event::Offloaded,
                           event::Progress, event::NotKept, event::Recovered, event::DraftsEnded>;

// Called from the thread that called the engine. Only Progress uses the return value. May be empty.
using EventSink = std::function<bool(const Event&)>;

}  // namespace gimbal
