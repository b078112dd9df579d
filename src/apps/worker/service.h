// The worker as a server: its one model behind the APIs of `gimbal serve`, by itself, and a hive that is
// told.
#pragma once
#include "apps/shared/http_service.h"
#include "apps/shared/sharing_options.h"
#include "apps/worker/worker.h"

namespace gimbal::worker {

struct ServiceOptions {
  HttpOptions http;  // without a port nothing is served
  SharingOptions sharing;
  std::optional<std::string> id, hive;
  std::optional<int> heartbeat;  // seconds
  bool json = false;             // the line that says where it is served
};

void declare(Arguments&, ServiceOptions&);
// Errors: Usage for what was typed and makes no sense: options of a server without --port, those of one text
// with it, and values that are none.
Status check(const Arguments&, const ServiceOptions&);

// Loads the model in this file, and serves until a signal. `options`: of loading, as for one text. Errors:
// those of the file and of loading, of listening and of Hive::create; DeviceLost.
Result<int> serve(const About&, const ServiceOptions&, const std::string& model, int gpu,
                  EngineOptions options, EventSink events, bool quiet);

}  // namespace gimbal::worker
