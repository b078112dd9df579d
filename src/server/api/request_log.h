// What is told of each request when it is over, whoever answered it.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "server/api/error.h"
#include "server/http/message.h"

namespace gimbal::api {

struct RequestRecord {
  std::string id;  // as in the header x-request-id or request-id
  Dialect dialect = Dialect::OpenAi;
  std::string method = {}, path = {}, peer = {};  // empty: what came was no request
  double begin = 0;                               // now() when its head and body were there
  std::string body = {};                          // only where prompts are to be told

  int status = 0;
  std::string model = {};     // that it named, and that there is
  int prompt_tokens = -1;     // -1: it is no text
  int generated_tokens = -1;  // of all choices
  double first_token = -1;    // seconds from `begin`
  double seconds = 0;         // in all
  // Why it ended: "stop", "length", "tool_calls"; "done" for what is no text; the code of an error, or
  // "refused" and "failed"; "client-left".
  std::string end = {};
  std::string why = {};  // of an error, in its words; told where the status is 500 or above
};

struct RequestLog {
  bool prompts = false;                                 // the bodies of requests, too
  std::function<void(const RequestRecord&)> tell = {};  // from several threads; must not block; may be empty
};

// `inner`, so that `record` is told once when the answer has ended. `log` outlives it. Whoever fills the
// record does it before the end, from the threads that answer.
std::shared_ptr<http::Exchange> logged(const RequestLog& log, std::shared_ptr<RequestRecord> record,
                                       std::shared_ptr<http::Exchange> inner);

// One line, its end included, of at most 4000 bytes: an object of JSON, or for people. A prompt is cut to
// fit.
std::string log_line(const RequestRecord&, bool json);
// The same for anything else that a log tells.
std::string log_line(const std::string& message);

}  // namespace gimbal::api
