// Requests, responses and exchanges, as handlers see them. Independent of
// sockets.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::http {

struct Header {
  std::string name, value;  // of requests: lower-case name, value without surrounding white space
};

struct Request {
  std::string method, path, query;  // the path is decoded and starts with "/"; the query is raw
  std::vector<Header> headers;
  std::string body;
  std::string peer;  // the client's address, without its port

  // The first of this name (in lower case), or nullptr.
  const std::string* header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<Header> headers = {};
};

// Output of one Source::pull().
struct Outgoing {
  std::optional<Response> whole;  // the complete answer; excludes the fields below
  std::optional<Response> head;   // of a stream: once, before any bytes; its body is ignored
  std::string bytes;
  bool end = false;  // of the stream
};

// A streamed answer. Both functions run on the connections' thread and must not block.
class Source {
 public:
  virtual ~Source() = default;
  // Returns the available output, which may be empty. Called after each wake(), and when the client has
  // received the previous output.
  virtual void pull(Outgoing&) = 0;
  // The client disconnected before the end. The last call.
  virtual void gone() = 0;
};

class Exchange;

// The messages of one WebSocket, each answered like a request. The answer is an exchange's: of a Response,
// the body becomes one text message, or none if it is empty; of a Source, Outgoing::bytes are whole frames
// (server/http/websocket.h), and its head is ignored. Closing the socket calls Source::gone().
class Messages {
 public:
  virtual ~Messages() = default;
  // From several threads, one message at a time, in order; may block. `number` counts them.
  virtual void handle(uint64_t number, std::string text, std::shared_ptr<Exchange>) = 0;
  // A text that arrives while message `number` is answered. On the connections' thread; must not block. True:
  // it concerns that answer, and has none of its own. False: it waits for its turn.
  virtual bool take_early(uint64_t number, std::string_view text) = 0;
  // The answer to a message whose handling failed.
  virtual Response failed() = 0;
};

// Connects one request to its answer. Thread-safe. Call exactly one of answer(), stream() and open(), once.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void answer(Response) = 0;
  virtual void stream(std::shared_ptr<Source>) = 0;
  // Makes a WebSocket of the connection. `head`: that of accept_socket().
  virtual void open(Response head, std::shared_ptr<Messages>) = 0;
  virtual void wake() = 0;  // the source has more
};

// "Not Found".
const char* reason_of(int status);
// ASCII letters in lower case: names of hosts, headers and types are case-insensitive.
std::string lower(std::string_view);

}  // namespace gimbal::http
