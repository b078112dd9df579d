// The pretended GPU: memory on the host, streams, events and graphs as lists of work that run only when
// somebody waits, in an unhelpful order that no stream or event forbids. So a wait that is missing shows as a
// wrong result.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace gimbal::test {

struct Work {
  std::function<int()> run;   // gives an error number
  std::vector<size_t> after;  // of the same list
};
struct Graph {
  std::vector<Work> work;
};
struct Stream {
  std::vector<size_t> last;    // work that must end before the next begins
  std::vector<size_t> before;  // the same from before a capture, for work behind it
  Graph* capture = nullptr;
  bool origin = false;  // began the capture
};
struct Event {
  std::vector<size_t> last;
  Graph* capture = nullptr;
  bool sleeps = false;  // a host that waits for it
};

class PretendedDevice {
 public:
  static PretendedDevice& the();

  void reset();
  // What every call does first: counts it, and gives the error that was asked for, or that of a lost device.
  int enter(const std::string& symbol);

  int enqueue(Stream&, std::function<int()>);
  int wait_for_all();
  int record(Event&, Stream&);
  int wait(Stream&, Event&);
  int begin_capture(Stream&);
  int end_capture(Stream&, Graph** out);
  int launch(const Graph&, Stream&);

  int allocate(uint64_t* out, uint64_t bytes);
  int release(uint64_t at);
  // Whether these bytes are in one allocation.
  bool has(uint64_t at, uint64_t bytes) const;
  uint64_t allocated() const { return allocated_; }

  // Counts what is given out, and taken back (-1). What a lost device never gives back stays known here, and
  // so is no leak.
  template <class T>
  T* keep(T* handle, int n = 1) {
    handles += n;
    if (n > 0) kept_.insert(handle);
    else kept_.erase(handle);
    return handle;
  }

  int devices = 1, version = 0, unified = 0, major = 9, minor = 0, handles = 0, ran = 0;
  int lose_after = -1, lost_error = 0, lost = 0;
  uint64_t memory = 0, seed = 0;
  std::string architecture;
  std::map<std::string, int> calls;
  struct Failing {
    int error, after;
  };
  std::map<std::string, Failing> failing;

 private:
  std::vector<Work> pending_;
  std::vector<Stream*> streams_;
  std::vector<Event*> events_;
  std::set<void*> kept_;
  std::map<uint64_t, uint64_t> blocks_;  // bytes by address
  uint64_t allocated_ = 0;

 public:
  void add(Stream* s) { streams_.push_back(s); }
  void add(Event* e) { events_.push_back(e); }
  void remove(Stream* s) { std::erase(streams_, s); }
  void remove(Event* e) { std::erase(events_, e); }
};

}  // namespace gimbal::test
