// The first message of a server to a worker process: the model and its load settings.
#pragma once
#include <gimbal/settings.h>

#include <cstdint>

#include "base/json_fwd.h"
#include "base/result.h"

namespace gimbal {

inline constexpr int kTextsAtOnce = 64;  // default of LoadSettings::parallel

// The load settings of a model that answers many texts at once, in users' terms.
struct LoadSettings {
  DeviceSettings devices;
  ModelOptions model;           // `sequences` is ignored
  int parallel = kTextsAtOnce;  // requests that a model computes at once
  // Tokens of KV cache for all of them; 0: by the devices' free memory (runtime/memory_check.h), at least one
  // context, at most one per request.
  int64_t cache_tokens = 0;
  int queue = 256;   // most waiting requests
  int models = 1;    // that share the devices
  int together = 1;  // CacheBudget::together
};

namespace wire {

struct Load {
  std::string model;  // as open_model_file() takes it
  LoadSettings settings;
  uint64_t promised = 0;                 // bytes of host memory that other workers will take
  bool quiet = false, log_json = false;  // of its notes on stderr
  // The front has a prefix store: its pages come through kPageSockets. `salt`: salt_digest() of its keys.
  bool stores_pages = false;
  std::string salt = {};
};

Json json_of(const Load&);
// Errors: Malformed, naming the field that is missing, has the wrong type or is out of range.
Result<Load> read_load(const Json&);

}  // namespace wire
}  // namespace gimbal
