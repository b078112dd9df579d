// A backend of this program with its table watched: what is allocated and moved, how much memory it claims to
// have free, and when it gets lost. Two devices of it differ by their number only.
#pragma once
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "discovery/registry.h"

namespace gimbal::test {

struct Watch {
  std::vector<uint64_t> taken;  // bytes of each allocation
  int writes = 0, reads = 0;
  uint64_t free = 0;    // what it says to have; 0: the truth
  int until_lost = -1;  // submits from now on, then it is lost; -1: never
  uint64_t sum() const {
    uint64_t n = 0;
    for (uint64_t t : taken) n += t;
    return n;
  }
};

// One watch per open device of the watched backend. A test opens, uses and closes them one after the other.
template <int Which>
struct Watched {
  inline static const gimbal_backend* real = nullptr;
  inline static gimbal_backend table{};
  inline static std::map<gimbal_device*, Watch> watches;
  inline static gimbal_device* latest = nullptr;

  static const gimbal_backend& of(const std::string& backend) {
    for (LinkedBackends e = linked_backends(); *e; ++e)
      if (backend == (*e)()->name) real = (*e)();
    table = *real;
    table.open = [](int i, const char* options, gimbal_device** out) {
      const gimbal_code code = real->open(i, options, out);
      if (code == GIMBAL_OK) latest = *out, watches[latest] = {};
      return code;
    };
    table.close = [](gimbal_device* d) { watches.erase(d), real->close(d); };
    table.describe = [](gimbal_device* d, gimbal_device_info* i) {
      real->describe(d, i);
      if (watches[d].free) i->memory_free = watches[d].free;
    };
    table.alloc = [](gimbal_device* d, size_t n, gimbal_buffer** out) {
      watches[d].taken.push_back(n);
      return real->alloc(d, n, out);
    };
    table.write = [](gimbal_device* d, gimbal_buffer* b, size_t o, const void* p, size_t n) {
      watches[d].writes++;
      return real->write(d, b, o, p, n);
    };
    table.read = [](gimbal_device* d, gimbal_buffer* b, size_t o, void* p, size_t n) {
      watches[d].reads++;
      return real->read(d, b, o, p, n);
    };
    table.submit = [](gimbal_device* d, gimbal_executable* e, gimbal_buffer* const* s, size_t n,
                      gimbal_step step) {
      Watch& w = watches[d];
      if (w.until_lost == 0) return GIMBAL_DEVICE_LOST;
      if (w.until_lost > 0) w.until_lost--;
      return real->submit(d, e, s, n, step);
    };
    return table;
  }
};

}  // namespace gimbal::test
