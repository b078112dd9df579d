// One log record per request, written when the answer ends.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/api/error.h"
#include "server/http/message.h"

namespace gimbal::api {

struct RequestRecord {
  std::string id;  // as in the header x-request-id or request-id
  Dialect dialect = Dialect::OpenAi;
  std::string method = {}, path = {}, peer = {};  // empty if the input was not a valid request
  std::string route = "other";                    // of the path, without its open part: "/v1/models/*"
  double begin = 0;                               // now() when its head and body had arrived
  std::string body = {};                          // only if the log includes prompts

  int status = 0;
  std::string model = {};     // the requested model, if it exists
  int prompt_tokens = -1;     // -1: not a text generation
  int generated_tokens = -1;  // of all choices
  double first_token = -1;    // seconds from `begin`
  double seconds = 0;         // total
  // The reason for its end: "stop", "length", "tool_calls"; "done" if not a text generation; an error's
  // code, else "refused" or "failed"; "client-left".
  std::string end = {};
  bool broke_off = false;               // a stream ended with an error
  std::string why = {};                 // an error's message; logged if the status is 500 or above
  std::vector<std::string> notes = {};  // as in the header x-gimbal-note
};

class RequestCounts;

struct RequestLog {
  bool prompts = false;                                 // also log request bodies
  std::function<void(const RequestRecord&)> tell = {};  // from several threads; must not block; may be empty
};

// Wraps `inner` so that `record` is logged and counted once, when the answer has ended. `log` and `counts`
// must outlive it. The answering threads fill in the record before the end.
std::shared_ptr<http::Exchange> logged(const RequestLog& log, RequestCounts& counts,
                                       std::shared_ptr<RequestRecord> record,
                                       std::shared_ptr<http::Exchange> inner);

// One line with its newline, at most 4000 bytes: a JSON object, or text for people. Long texts are cut,
// bodies first; of notes there are ten at most.
std::string log_line(const RequestRecord&, bool json);
// A log line for any other message.
std::string log_line(const std::string& message);

}  // namespace gimbal::api
