// A request, the answer to it, and the exchange of the two, as those who answer see them. Nothing here knows
// sockets.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::http {

struct Header {
  std::string name, value;  // of requests: names in lower case, values without white space around them
};

struct Request {
  std::string method, path, query;  // the path is decoded and begins with "/"; the query is neither
  std::vector<Header> headers;
  std::string body;
  std::string peer;  // the client's address, without its port

  // The first of this name (in lower case); nullptr: none.
  const std::string* header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<Header> headers = {};
};

// What a source gives when it is asked.
struct Outgoing {
  std::optional<Response> whole;  // the answer, in place of everything below
  std::optional<Response> head;   // of a stream: once, before any bytes; its body is not looked at
  std::string bytes;
  bool end = false;  // of the stream
};

// An answer that comes by and by. Both are called from the thread of the connections and must not block.
class Source {
 public:
  virtual ~Source() = default;
  // Gives what there is; it may be nothing. Called after each wake(), and when the client has taken what was
  // given.
  virtual void pull(Outgoing&) = 0;
  // The client is gone before the end. The last call.
  virtual void gone() = 0;
};

// One request's way to its answer. Thread-safe. Exactly one of answer() and stream() is called, once.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void answer(Response) = 0;
  virtual void stream(std::shared_ptr<Source>) = 0;
  virtual void wake() = 0;  // the source has more
};

// "Not Found".
const char* reason_of(int status);
// ASCII letters in lower case: names of hosts, headers and types are alike without regard to it.
std::string lower(std::string_view);

}  // namespace gimbal::http
