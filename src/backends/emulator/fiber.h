// Stacks that take turns on one thread: the lanes of a group, each of which stops at barriers. Works under
// AddressSanitizer and ThreadSanitizer, which are told about every switch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gimbal::emulator {

class Fibers {
 public:
  using Body = void (*)(void* self, uint32_t index);

  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // From now on fiber i runs body(self, i), for i < count. False: no memory for the stacks. What an earlier
  // body had not finished is forgotten, without running its destructors.
  bool start(uint32_t count, Body body, void* self);
  // Runs fiber i until it pauses or returns; true when it has returned. It must not have returned before.
  bool resume(uint32_t i);
  // Called on a fiber: gives the turn back to whoever resumed it.
  void pause();

 private:
  struct Fiber;
  friend struct FiberEntry;
  void prepare(uint32_t i);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
  Body body_ = nullptr;
  void* self_ = nullptr;
  [[maybe_unused]] void* main_stack_ =
      nullptr;  // where resume() left off; which of these are used depends on the build
  [[maybe_unused]] const void* main_bottom_ = nullptr;  // for the sanitizers
  [[maybe_unused]] size_t main_size_ = 0;
  [[maybe_unused]] void* main_fiber_ = nullptr;
};

}  // namespace gimbal::emulator
