// The fields of reports, for base/json_fields.h: written as JSON, and read from another process.
#pragma once
#include "base/json_fields.h"
#include "engine/explanation.h"

namespace gimbal {

template <class IO, FieldsOf<DeviceUse> S>
void fields(IO& io, S& u) {
  io("device", u.device), io("host", u.host), io("bytes", u.bytes);
}

template <class IO, FieldsOf<MemoryPlan> S>
void fields(IO& io, S& m) {
  io("weights", m.weights), io("kv_cache", m.cache), io("activations", m.activations);
  io("step", m.step), io("output", m.output), io("scratch", m.scratch);
  io.derived("total", m.total());
  io("hand_over", m.transfer), io("free", m.free);
}

template <class IO, FieldsOf<DeviceMemory> S>
void fields(IO& io, S& m) {
  fields(io, m.plan);
  io("device", m.device), io("memory_total", m.total);
}

template <class IO, FieldsOf<Explanation::OfDevice> S>
void fields(IO& io, S& d) {
  fields(io, static_cast<std::conditional_t<std::is_const_v<S>, const DeviceMemory, DeviceMemory>&>(d));
  io("name", d.name), io("read_bytes_per_second", d.read_bytes_per_second);
}

template <class IO, FieldsOf<RejectedKernels> S>
void fields(IO& io, S& r) {
  io("why", r.why), io("kernels", r.kernels);
}

// Before any of it has run: without counts.
template <class IO, FieldsOf<ReceiptLine> S>
void fields(IO& io, S& l) {
  io("op", l.op), io("format", l.format), io("device", l.device), io("kernel", l.kernel);
  io("reason", l.why), io("ops", l.ops);
}

template <class IO, FieldsOf<HostUse> S>
void fields(IO& io, S& m) {
  io("sessions", m.sessions), io("total", m.total), io("free", m.free);
}

template <class IO, FieldsOf<Explanation::Stage> S>
void fields(IO& io, S& s) {
  io("device", s.device), io("contents", s.contents), io("reason", s.reason);
}

template <class IO, FieldsOf<Explanation::Op> S>
void row(IO& io, S& o) {
  io(o.name, o.output, o.choice);
}

template <class IO, FieldsOf<Explanation::Program> S>
void fields(IO& io, S& p) {
  io("purpose", p.purpose), io("rows", p.rows), io("ops", p.ops);
}

template <class IO, FieldsOf<Explanation::Choice> S>
void fields(IO& io, S& c) {
  io("op", c.op), io("format", c.format), io("device", c.device), io("kernel", c.kernel);
  io("why", c.why), io("rejected", c.rejected);
}

template <class IO, FieldsOf<RotationChoice> S>
void fields(IO& io, S& r) {
  io("rotated", r.rotated), io("reason", r.why);
}

template <class IO, FieldsOf<Explanation> S>
void fields(IO& io, S& e) {
  io("architecture", e.architecture), io("layers", e.layers), io("context", e.context);
  io("sequences", e.sequences), io("cache_tokens", e.cache_tokens);
  io("max_context_length", e.max_context_length), io("batch", e.batch);
  io("kv_type", e.kv_type), io("kv_rotation", e.kv_rotation), io("fast_kernels", e.fast_kernels);
  io("devices", e.devices), io("host", e.host), io("placement", e.placement);
  io("weight_bytes_per_token", e.weight_bytes_per_token), io("programs", e.programs);
  io("choices", e.choices);
}

}  // namespace gimbal
