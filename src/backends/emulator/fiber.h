// Cooperative fibers on one thread: the lanes of a group, which pause at barriers. Supports AddressSanitizer
// and ThreadSanitizer, which are notified of every switch.
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

  // Sets fiber i to run body(self, i), for i < count. False: no memory for the stacks. Unfinished earlier
  // bodies are discarded without running destructors.
  bool start(uint32_t count, Body body, void* self);
  // Runs fiber i until it pauses or returns; true if it returned. It must not have returned before.
  bool resume(uint32_t i);
  // Called on a fiber: returns control to the caller of resume().
  void pause();

 private:
  struct Fiber;
  friend struct FiberEntry;
  void prepare(uint32_t i);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
  Body body_ = nullptr;
  void* self_ = nullptr;
  // The context of resume(); its use depends on the build.
  [[maybe_unused]] void* main_stack_ = nullptr;
  [[maybe_unused]] const void* main_bottom_ = nullptr;  // for the sanitizers
  [[maybe_unused]] size_t main_size_ = 0;
  [[maybe_unused]] void* main_fiber_ = nullptr;
};

}  // namespace gimbal::emulator
