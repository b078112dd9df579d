// All the APIs of the server: routes, access checks and the common headers of answers.
#pragma once
#include <string>

#include "server/api/access.h"
#include "server/api/services.h"
#include "server/http/server.h"

namespace gimbal::api {

class Api final : public http::Handler {
 public:
  // `services` must outlive it.
  Api(Services& services, Access access) : services_(services), access_(std::move(access)) {}

  void handle(http::Request, std::shared_ptr<http::Exchange>) override;
  http::Response refusal(int status, std::string_view path, const std::string& why) override;

 private:
  std::string owner_of(std::string_view key) const;
  Services& services_;
  const Access access_;
};

// Whether this path has a GET route.
bool answers(const std::string& path);

}  // namespace gimbal::api
