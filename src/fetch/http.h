// HTTP requests whose answers fit into memory: metadata, and pieces of files.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "fetch/address.h"
#include "fetch/curl.h"
#include "fetch/pull_event.h"
#include "fetch/reach.h"

namespace gimbal {

// A token and the only origin that may receive it. It is never sent to another host, even after a redirect,
// and only to this machine without encryption.
struct Credential {
  std::string token, origin;
  bool for_url(const Url& u) const {
    return !token.empty() && u.origin() == origin && (u.scheme == "https" || u.is_loopback());
  }
};

// Polled during long operations; return false to cancel.
class Patience {
 public:
  virtual ~Patience() = default;
  virtual bool go_on() = 0;
};

struct HttpAnswer {
  long status = 0;
  std::map<std::string, std::string> headers;  // lower-case names; of the last response
  std::map<std::string, std::string> first;    // the same of the first response, if that was a redirect
  std::string body;
  Url url;                    // of the last response
  std::optional<Reach> from;  // where the last redirect came from; empty: no redirect
  Reach reached = Reach::Public;

  std::string header(const char* name) const;
  // Takes a header line from libcurl. False if there are too many.
  bool take_header(std::string_view line);
  // Parsed from "bytes 0-0/1234", the header of a range response; empty if absent or without a total.
  struct Range {
    uint64_t begin, end, total;  // end: one past the last byte
  };
  std::optional<Range> range() const;
};

class Http {
 public:
  // Errors: those of Curl::open.
  static Result<std::unique_ptr<Http>> create(Patience&);
  ~Http();

  struct Question {
    std::string url;
    const Credential& credential;
    uint64_t begin = 0, end = 0;     // of a range; end 0: no range
    size_t max_body = 64 << 20;      // bytes of the response; more is an error
    bool headers_only = false;       // do not wait for the body
    std::optional<Reach> from = {};  // if an earlier response led to this address: HttpAnswer::from
    int tries = 4;                   // of a connection that fails
    double until = 0;                // now() when the response must be whole; 0: no limit
    std::function<bool(const Url&)> may_lead_to = {};  // asked about each redirect; empty: anywhere
  };
  // Follows up to ten redirects, none of them into a private network (fetch/reach.h). An error status is a
  // result, not an Error. Retries failed connections. Errors: Failed, with the host and the cause;
  // Cancelled.
  Result<HttpAnswer> get(const Question&);

  const Curl& curl() const { return curl_; }
  Patience& patience() const { return patience_; }

 private:
  Http(const Curl& c, CURL* easy, Patience& p) : curl_(c), easy_(easy), patience_(p) {}
  Result<HttpAnswer> once(const Url&, std::optional<Reach> from, const Question&);

  const Curl& curl_;
  CURL* easy_;
  Patience& patience_;
};

// Sets what all requests share: certificates, time limits, headers. `error`: CURL_ERROR_SIZE bytes.
void prepare(const Curl&, CURL*, const std::string& url, HeaderList& headers, char* error);
// libcurl's callbacks with their arguments: `header` and `body` receive the response, `go_on` decides
// whether the transfer continues.
struct AnswerCallbacks {
  curl_write_callback header, body;
  void* to;
  curl_xferinfo_callback go_on;
  void* asked;
};
void deliver_to(const Curl&, CURL*, const AnswerCallbacks&);
// The reason why libcurl gave up.
Error connection_error(const Curl&, CURLcode, const Url&, const char* detail);
// Whether the error is transient, so that a retry may help.
bool is_passing(CURLcode);

// Short HTTP messages to another program, where only the status matters.

// Posts JSON once, without redirects, and returns the status. Takes at most `seconds`, including
// the name lookup; reads at most 64 kB of an endless response. Calls `go_on` at least once a
// second; false cancels. Errors: Failed, with the host and the cause; cancelled; those of
// Curl::open.
Result<long> post_json(const Url&, const std::string& json, double seconds,
                       const std::function<bool()>& go_on);

}  // namespace gimbal
