// Counts the requests of a server, for /metrics. The values of labels are bounded: routes, methods of these,
// statuses, and the server's models.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "scheduler/numbers.h"
#include "server/api/request_log.h"

namespace gimbal::api {

// Thread-safe.
class RequestCounts {
 public:
  // Once for each request, when its answer has ended.
  void add(const RequestRecord&);
  // Appends all families in Prometheus' text format.
  void write(std::string& out) const;

 private:
  struct OfModel {
    uint64_t refused = 0, failed = 0, left = 0;
    Durations seconds = {};  // of answers
  };
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, int, std::string>, uint64_t>
      requests_;  // by route, method, status, model
  std::map<std::string, OfModel> models_;
};

// Prometheus' text format: the lines that introduce a family, and those of a histogram. `labels`: as
// model="a", or empty.
void describe_metric(std::string& out, const char* name, const char* type, const char* help);
void add_histogram(std::string& out, const char* name, const std::string& labels, const Durations&);

}  // namespace gimbal::api
