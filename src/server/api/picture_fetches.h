// Pictures that requests have as addresses: fetched from the hosts that the operator allows, and from no
// other. A fetch waits in the thread of its request; only a few do so at once, and clients take turns.
#pragma once
#include <string>
#include <vector>

#include "fetch/address.h"
#include "server/api/error.h"
#include "server/api/pictures.h"
#include "server/api/renderings.h"

namespace gimbal::api {

class PictureFetches {
 public:
  // The first of these that is no host: a name or an address, with a port or without, [in brackets] for
  // IPv6.
  static std::optional<std::string> wrong_host(const std::vector<std::string>& hosts);
  // Without a port: the scheme's own. A private address is only reached by its number, never by a name.
  // Before any request.
  void allow(std::vector<std::string> hosts);

  // Fetches the pictures of a request. Refused, in the picture's field: another host, a failure, bytes that
  // are no picture; or too many requests wait (503).
  Refused fetch(const std::string& client, ChatInput&);

  static constexpr double kSeconds = 10;
  double seconds = kSeconds;  // for all pictures of a request

 private:
  static constexpr int kAtOnce = 8;
  static constexpr size_t kWaiting = 16, kWaitingEach = 4;

  bool allows(const Url&) const;
  // The address of a picture. Refused: it is not of an allowed host.
  Refused check(const PictureAddress&, Url& to) const;

  std::vector<std::string> hosts_;  // in lower case
  Turns turns_{kAtOnce, kWaiting, kWaitingEach};
};

}  // namespace gimbal::api
