// What a server tells a worker process first: the model, and how it is loaded.
#pragma once
#include <gimbal/settings.h>

#include <cstdint>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal {

inline constexpr int kTextsAtOnce = 64;  // that a model answers, unless a user chose a number

// How a model is loaded that answers many texts at once, in the settings of users.
struct LoadSettings {
  DeviceSettings devices;
  ModelOptions model;           // `sequences` does not count
  int parallel = kTextsAtOnce;  // requests of a model
  // Tokens of KV cache for all of them; 0: what the devices have free (runtime/cache_size.h), at least a
  // context and at most one for each.
  int64_t cache_tokens = 0;
  int queue = 256;   // requests that wait at most
  int models = 1;    // that share the devices
  int together = 1;  // CacheWish::together
};

namespace wire {

struct Load {
  std::string model;  // as open_model_file() takes it
  LoadSettings settings;
  uint64_t promised = 0;                 // bytes of the host's memory that other workers will take
  bool quiet = false, log_json = false;  // of its notes on stderr
};

Json json_of(const Load&);
// Errors: Malformed, naming a field that is missing, of another type or out of range.
Result<Load> read_load(const Json&);

}  // namespace wire
}  // namespace gimbal
