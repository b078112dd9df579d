#include "gpu/driver_api/recording.h"

#include <algorithm>
#include <cstring>

namespace gimbal::gpu::driver_api {

DriverRecording::DriverRecording(Session& session, std::span<const Launch> launches)
    : session_(session), launches_(launches.size()) {
  for (size_t i = 0; i < launches.size(); i++) {
    const Launch& from = launches[i];
    Prepared& to = launches_[i];
    to.kernel = static_cast<const DriverKernel*>(from.kernel);
    std::copy(std::begin(from.groups), std::end(from.groups), to.groups);
    memcpy(to.params, from.params, sizeof to.params);
    const uint32_t n = to.kernel->facts.bindings;
    for (uint32_t k = 0; k <= n; k++) {
      const Binding& b = k < n ? from.binding[k] : from.step;
      to.address[k] = static_cast<const DriverBuffer*>(b.buffer)->at + b.offset;
      to.argument[k] = &to.address[k];
    }
    to.argument[n + 1] = to.params;
    if (from.after_all || phases_.empty()) phases_.push_back({i, i});
    phases_.back().end = i + 1;
  }
}

DriverRecording::~DriverRecording() {
  if (instance_) session_.undo(session_.functions().destroy_instance, instance_);
  if (graph_) session_.undo(session_.functions().destroy_graph, graph_);
}

Failure DriverRecording::launch(Prepared& p, void* stream) {
  return session_.call(session_.functions().launch, p.kernel->facts.name.data(), p.kernel->function,
                       p.groups[0], p.groups[1], p.groups[2], p.kernel->facts.lanes, 1u, 1u, 0u, stream,
                       p.argument, static_cast<void**>(nullptr));
}

// The launches of each phase go to the streams in turn. The streams wait for the previous phase, and the next
// phase waits for them. When captured, these waits become the edges of the graph.
Failure DriverRecording::enqueue() {
  const Functions& f = session_.functions();
  constexpr int kStreams = 1 + Session::kSideStreams;
  for (const Phase& phase : phases_) {
    const int streams = int(std::min<size_t>(phase.end - phase.begin, kStreams));
    if (streams > 1)
      if (Failure e =
              session_.call(f.record_event, "ordering launches", session_.forked(), session_.stream()))
        return e;
    for (int s = 1; s < streams; s++)
      if (Failure e =
              session_.call(f.wait_event, "ordering launches", session_.side(s - 1), session_.forked(), 0u))
        return e;
    for (size_t i = phase.begin; i < phase.end; i++) {
      const int s = int((i - phase.begin) % size_t(kStreams));
      if (Failure e = launch(launches_[i], s ? session_.side(s - 1) : session_.stream())) return e;
    }
    for (int s = 1; s < streams; s++) {
      if (Failure e = session_.call(f.record_event, "ordering launches", session_.joined(s - 1),
                                    session_.side(s - 1)))
        return e;
      if (Failure e =
              session_.call(f.wait_event, "ordering launches", session_.stream(), session_.joined(s - 1), 0u))
        return e;
    }
  }
  return {};
}

Failure DriverRecording::record() {
  if (!session_.driver().graphs || launches_.empty()) return {};
  const Functions& f = session_.functions();
  constexpr int kThisThreadOnly = 1;  // other threads' calls do not disturb the recording
  if (Failure e = session_.call(f.begin_capture, "recording launches", session_.stream(), kThisThreadOnly))
    return e;
  Failure first = enqueue();
  // Always ended, so that the stream can be used again.
  Failure last = session_.call(f.end_capture, "recording launches", session_.stream(), &graph_);
  if (first) return first;
  if (last) return last;
  return session_.call(f.instantiate, "making a graph of the recording", &instance_, graph_, 0ull);
}

Failure DriverRecording::replay() {
  if (instance_)
    return session_.call(session_.functions().launch_graph, "replaying a recording", instance_,
                         session_.stream());
  return enqueue();
}

}  // namespace gimbal::gpu::driver_api
