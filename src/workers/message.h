// The protocol between a front and its worker processes: one JSON object per line.
//
//   front to worker                    worker to front
//   {"load": {"protocol": 11, ...}}                                     first; one for a process
//   {"submit": {"id", "prompt", ...}}  {"planned": {"needs"}}           of memory; it waits for "go"
//   {"cancel": id}                     {"loading": [done, total]}       then, bytes
//   {"embed": {"id", "texts"}}         {"hello": {"protocol": 11, ...}} ready
//   {"ping": n}                        {"begun": id}                    before its first rows
//   {"go": true}
//   {"save": {"id", "text", ...}}      {"token": {"id", "index", "token", "text", ...}}
//   {"restore": id}                    {"scored": {"id", "index", "token", ...}}
//   {"erase": {"id", "text"}}          {"end": {"id", "finish", ...}}
//                                      {"state": {"id", "tokens", ...}}
//                                      {"embedding": {"id", "text", "values"}}
//                                      {"failed": {"id", "code", "message", ...}}
//                                      {"pong": {"n", "numbers"}}
//
// "save" and "restore" come with an open file: the worker may open none. The pages of a prefix store have
// sockets of their own (store/page_socket.h).
//
// Neither side trusts the other: a message of another form is an error, and numbers are checked.
#pragma once
#include <variant>

#include "engine/explanation.h"
#include "scheduler/numbers.h"
#include "scheduler/request.h"
#include "workers/load.h"

namespace gimbal::wire {

inline constexpr int kProtocol = 11;
inline constexpr size_t kMaxLine = size_t(32) << 20;  // bytes

struct Submit {
  uint64_t id;
  GenerationRequest request;
};
struct Cancel {
  uint64_t id;
};
struct Embed {
  uint64_t id;  // from the same numbers as requests
  std::vector<std::vector<Token>> texts;
};
struct Ping {
  uint64_t n;
};
struct Go {  // the worker may take the planned memory
  bool operator==(const Go&) const = default;
};
// The calls of SavedPrompts; each is answered by State or Failed.
struct Save {
  uint64_t id;  // from the same numbers as requests
  std::vector<Token> text;
  bool writes = true;  // with a file; else SavedPrompts::kept()
};
struct Restore {  // with a file
  uint64_t id;
};
struct Erase {
  uint64_t id;
  std::vector<Token> text;
};
using ToWorker = std::variant<Load, Submit, Cancel, Embed, Ping, Go, Save, Restore, Erase>;

// Bytes of one memory, from the plan of a model.
struct MemoryNeed {
  std::string device;  // its id; empty: the host's memory, including the use by devices
  uint64_t total = 0;  // includes the next two
  uint64_t weights = 0;
  uint64_t shared = 0;  // of the weights: pages of a file, shared by all processes
  uint64_t free = 0;    // before the model takes any
};

struct Hello {
  int context = 0;  // positions that one text can have
  int pid = 0;
  bool generates = true;                  // false: embeddings only
  std::vector<DeviceUse> devices = {};    // for the model and its drafts
  std::vector<ReceiptLine> kernels = {};  // without counts
  Explanation explanation = {};           // how the model is computed
};
struct Planned {  // the worker waits for Go; once for each model that it loads
  std::vector<MemoryNeed> needs;
};
struct Loading {
  uint64_t done, total;
};
struct Begun {  // from now on this request may be the cause of a loss
  uint64_t id;
};
struct NextToken {
  uint64_t id;
  TokenEvent told;
};
struct Scored {  // GenerationSink::scored
  uint64_t id;
  TokenEvent told;
};
struct Ended {
  uint64_t id;
  GenerationEnd end;
};
struct Failed {
  uint64_t id;  // 0: the worker itself, which cannot continue
  Error why;
};
struct Embedding {
  uint64_t id;
  int text;  // of Embed::texts; they come in order
  std::vector<float> values;
};
struct Pong {
  uint64_t n;
  SchedulerNumbers numbers;  // `steps` rises while anything is computed
};
struct State {
  uint64_t id;
  int tokens = 0;                // that were saved, restored or erased
  std::vector<Token> text = {};  // restored
};
using FromWorker =
    std::variant<Hello, Planned, Loading, Begun, NextToken, Scored, Ended, Embedding, Failed, Pong, State>;

// Returns a line without its end.
std::string encode(const ToWorker&);
std::string encode(const FromWorker&);

// Errors: Malformed, with the fault.
Result<ToWorker> decode_to_worker(std::string_view line);
Result<FromWorker> decode_from_worker(std::string_view line);

}  // namespace gimbal::wire
