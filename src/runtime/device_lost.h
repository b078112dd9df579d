// Recovery from a lost device: one interface for a single text, for many, and for embeddings.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace gimbal {

class Model;
// A loaded model with shared ownership; it keeps its devices alive.
using ModelPtr = std::shared_ptr<Model>;

// Continues the work on this model: the same one, on other devices. Returns a summary for people ("12
// texts").
using MoveTo = std::function<Result<std::string>(const ModelPtr&)>;

// Called when a device is lost, with that error. Loads the model on other devices and calls `move` with it.
// Errors: why the work cannot continue; those of `move`.
using OnDeviceLost = std::function<Status(const Error& lost, const MoveTo& move)>;

}  // namespace gimbal
