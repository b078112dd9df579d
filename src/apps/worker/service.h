// The worker as a server: its only model behind the APIs of `gimbal serve`, standalone or registered with a
// hive.
#pragma once
#include "apps/options/sharing_options.h"
#include "apps/serving/http_service.h"
#include "apps/worker/worker.h"

namespace gimbal::worker {

struct ServiceOptions {
  HttpOptions http;  // without a port it does not serve
  SharingOptions sharing;
  std::optional<std::string> id, hive;
  std::optional<int> heartbeat;  // seconds
  bool json = false;             // reports the address as JSON
};

void declare(Arguments&, ServiceOptions&);
// Errors: Usage for invalid combinations: server options without --port, options of one text with it; and
// for invalid values.
Status check(const Arguments&, const ServiceOptions&);

// Loads the model in this file, and serves until a signal. `options`: for loading, as for one text. Errors:
// those of the file and of loading, of listening and of Hive::create; DeviceLost.
Result<int> serve(const About&, const ServiceOptions&, const std::string& model, int gpu,
                  EngineOptions options, EventSink events, bool quiet);

}  // namespace gimbal::worker
