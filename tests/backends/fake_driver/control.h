// What a test tells the fake driver, and asks it: one exported function, "fake_driver", gives this table.
#pragma once
#include <cstdint>

namespace gimbal::test {

struct FakeControl {
  const char* says;  // that it is a fake
  // Everything as at the start: one device with 1 GiB, nothing fails. Memory that was allocated is forgotten.
  void (*reset)();
  void (*set_devices)(int);
  void (*set_memory)(uint64_t bytes);
  void (*set_version)(int);
  void (*set_unified)(int);
  void (*set_capability)(int major, int minor);  // NVIDIA
  void (*set_architecture)(const char*);         // AMD: "gfx90a:sramecc+:xnack-"
  // What is ready to run does so in an order drawn from it. 0: the newest first.
  void (*set_seed)(uint64_t);
  // The call of `symbol` after the next `after` ones gives `error` instead of doing anything; once.
  void (*fail)(const char* symbol, int error, int after);
  // The device is lost while it runs the launch after the next `launches` ones: every call gives `error` from
  // then on.
  void (*lose)(int launches, int error);
  // Since reset.
  int (*calls)(const char* symbol);
  int (*launches)();        // that ran
  uint64_t (*allocated)();  // bytes that are not released
  int (*handles)();         // streams, events, modules, graphs, contexts that are not given back
};
using FakeEntry = const FakeControl* (*)();

}  // namespace gimbal::test
