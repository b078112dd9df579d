#include "gpu/driver_api/session.h"

namespace gimbal::gpu::driver_api {
namespace {

// The same numbers in both interfaces.
constexpr unsigned kIndependentOfTheDefaultStream = 1, kSleep = 1, kWithoutTime = 2;

}  // namespace

Failure Session::start() {
  const Functions& f = functions();
  if (f.retain_context.call) {
    if (Failure e = call(f.retain_context, "opening the device", &context_, gpu_.handle)) return e;
    context_kept_ = true;
  }
  if (Failure e = use()) return e;
  auto stream = [&](void** out) {
    return call(f.create_stream, "opening the device", out, kIndependentOfTheDefaultStream);
  };
  auto event = [&](void** out, unsigned more = 0) {
    return call(f.create_event, "opening the device", out, kWithoutTime | more);
  };
  if (Failure e = stream(&stream_)) return e;
  if (Failure e = event(&finished_, kSleep)) return e;
  if (Failure e = event(&forked_)) return e;
  for (int i = 0; i < kSideStreams; i++) {
    if (Failure e = stream(&side_[i])) return e;
    if (Failure e = event(&joined_[i])) return e;
  }
  return {};
}

Failure Session::use() {
  const Functions& f = functions();
  if (f.use_context.call) return call(f.use_context, "selecting the device", context_);
  return call(f.use_device, "selecting the device", gpu_.handle);
}

Session::~Session() {
  const Functions& f = functions();
  for (int i = 0; i < kSideStreams; i++) {
    if (joined_[i]) undo(f.destroy_event, joined_[i]);
    if (side_[i]) undo(f.destroy_stream, side_[i]);
  }
  if (forked_) undo(f.destroy_event, forked_);
  if (finished_) undo(f.destroy_event, finished_);
  if (stream_) undo(f.destroy_stream, stream_);
  if (context_kept_)
    (void)f.release_context.call(gpu_.handle);  // a lost context too, so that it can be created again
}

}  // namespace gimbal::gpu::driver_api
