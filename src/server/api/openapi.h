// A description of the HTTP APIs (OpenAPI 3.1), made from the code that reads requests: each handler runs
// once with an object that records its fields. So the description and the code cannot differ.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/api/fields.h"

namespace gimbal::api {

// A field that handlers read, and the fields in it.
struct FieldsSeen {
  std::vector<FieldRead> reads = {};              // of different kinds
  bool closed = false;                            // an object without fields but these
  std::map<std::string, FieldsSeen> fields = {};  // of an object
  std::shared_ptr<FieldsSeen> element = {};       // the objects of a list
  uint32_t rounds = 0, needed = 0;                // a bit for each round: it was read; it must be there
};

// One method of a path.
struct Endpoint {
  std::string method, path;  // "*": the open part of the path
  bool open = false;         // needs no key
  bool whole = true;         // the handler read all its fields
  FieldsSeen body = {};      // of a POST, or of a message
  std::string list = {};     // the field that a body stands for if it is a list; empty: it may be none
  bool socket = false;       // a WebSocket
  std::string file = {};     // the field of a form's file; empty: the body is JSON
};

// All routes. Computed at the first call.
const std::vector<Endpoint>& endpoints();

// The OpenAPI document. `version`: of gimbal.
Json openapi(const std::string& version);

// "POST /v1/chat/completions": up to three endpoints whose requests have this field.
std::vector<std::string> endpoints_with(const std::string& field);

}  // namespace gimbal::api
