// All the APIs of the server: which path is whose, who may ask, and what every answer has.
#pragma once
#include <string>

#include "server/api/access.h"
#include "server/api/services.h"
#include "server/http/server.h"

namespace gimbal::api {

class Api final : public http::Handler {
 public:
  // `services` outlives it.
  Api(Services& services, Access access) : services_(services), access_(std::move(access)) {}

  void handle(http::Request, std::shared_ptr<http::Exchange>) override;
  http::Response refusal(int status, std::string_view path, const std::string& why) override;

 private:
  Services& services_;
  const Access access_;
};

// Whether there is something to GET at this path.
bool answers(const std::string& path);

}  // namespace gimbal::api
