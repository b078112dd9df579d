// The settings of a text as fields of JSON (base/json_fields.h), for the workers' protocol and for
// certificates.
#pragma once
#include "runtime/sampling_table.h"
#include "runtime/text_state.h"

namespace gimbal {

template <class IO, class S>
void sampling_fields(IO& io, S& sampling) {
  for (const SamplingSetting& s : kSamplingSettings)
    std::visit([&](auto member) { io(s.field, sampling.*member); }, s.member);
}

// Those that decide the text; `logprobs` and `certify` only add to it.
template <class IO, class S>
void text_fields(IO& io, S& t) {
  sampling_fields(io, t.sampler);
  io("max_tokens", t.max_tokens), io("stops", t.stops), io("ignore_stop_tokens", t.ignore_stop_tokens);
  io("completes", t.completes);
  io("reasoning_tokens", t.reasoning.tokens), io("reasoning_inside", t.reasoning.inside);
  io("reasoning_begin", t.reasoning.begin), io("reasoning_end", t.reasoning.end);
  io("reasoning_finish", t.reasoning.finish);
}

}  // namespace gimbal
