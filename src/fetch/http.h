// Questions over HTTP whose answers fit into memory: what a server has, and pieces of files.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fetch/address.h"
#include "fetch/curl.h"
#include "fetch/pull_event.h"
#include "fetch/reach.h"

namespace gimbal {

// A token and the one origin that may see it: it goes to no other host, whatever a redirection says, and in
// clear to this machine only.
struct Credential {
  std::string token, origin;
  bool for_url(const Url& u) const {
    return !token.empty() && u.origin() == origin && (u.scheme == "https" || u.is_loopback());
  }
};

// Asked now and then while something takes long; false ends it.
class Patience {
 public:
  virtual ~Patience() = default;
  virtual bool go_on() = 0;
};

struct HttpAnswer {
  long status = 0;
  std::map<std::string, std::string> headers;  // names in lower case; of the last answer
  std::map<std::string, std::string> first;    // the same of the first one, where it was a redirection
  std::string body;
  Url url;                    // that answered in the end
  std::optional<Reach> from;  // where the last redirection was; nothing: there was none
  Reach reached = Reach::Public;

  std::string header(const char* name) const;
  // A line as libcurl gives it. False when there are too many.
  bool take_header(std::string_view line);
  // "bytes 0-0/1234" of the answer to a range; nothing where it tells none.
  struct Range {
    uint64_t begin, end, total;  // end: behind the last byte
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
    uint64_t begin = 0, end = 0;     // of a range; end 0: none is asked for
    size_t max_body = 64 << 20;      // of the answer; more is an error
    bool headers_only = false;       // the body is not waited for
    std::optional<Reach> from = {};  // of an address that an earlier answer led to: HttpAnswer::from
  };
  // Follows up to ten redirections, none of them into a network (fetch/reach.h); a status that is an error is
  // an answer. Tries again where the way there fails. Errors: Failed, with the host and what happened;
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

// What every request has: certificates, time limits, headers. `error`: CURL_ERROR_SIZE bytes.
void prepare(const Curl&, CURL*, const std::string& url, HeaderList& headers, char* error);
// Who gets the answer of a question, and is asked whether to go on with it: libcurl's callbacks, and what
// they are given.
struct AnswerCallbacks {
  curl_write_callback header, body;
  void* to;
  curl_xferinfo_callback go_on;
  void* asked;
};
void deliver_to(const Curl&, CURL*, const AnswerCallbacks&);
// Why libcurl gave up.
Error connection_error(const Curl&, CURLcode, const Url&, const char* detail);
// Whether another try may help.
bool is_passing(CURLcode);
Error cancelled();

}  // namespace gimbal
