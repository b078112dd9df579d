#include "backends/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(GIMBAL_PORTABLE_FIBERS)
#define GIMBAL_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define GIMBAL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GIMBAL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define GIMBAL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GIMBAL_TSAN 1
#endif
#endif

extern "C" {
#ifdef GIMBAL_ASAN
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);
void __asan_unpoison_memory_region(const volatile void* at, size_t size);
#endif
#ifdef GIMBAL_TSAN
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
#endif
}

#ifdef GIMBAL_OWN_SWITCH
// Saves the registers that a function call must preserve (System V ABI) and changes the stack: some
// nanoseconds, while swapcontext() makes two system calls.
extern "C" void gimbal_switch_stack(void** from, void* to);
asm(R"(
.text
.type gimbal_switch_stack, @function
.hidden gimbal_switch_stack
.globl gimbal_switch_stack
gimbal_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gimbal_switch_stack, .-gimbal_switch_stack
)");
#endif

namespace gimbal::emulator {
namespace {
constexpr size_t kStackBytes = 256 << 10;  // instrumented code needs much; untouched pages cost nothing
}

struct Fibers::Fiber {
  uint8_t* memory = nullptr;  // the lowest page is a guard
  void* stack = nullptr;      // where it left off
  uint32_t index = 0;
  bool done = true;
  void* fake_stack = nullptr;
  void* tsan = nullptr;
#ifndef GIMBAL_OWN_SWITCH
  ucontext_t context, back;
#endif

  ~Fiber() {
#ifdef GIMBAL_TSAN
    if (tsan) __tsan_destroy_fiber(tsan);
#endif
    if (memory) munmap(memory, kStackBytes);
  }
};

struct FiberEntry {  // the first function on a new stack; never returns
  static thread_local Fibers* starting;
  static void run() {
    Fibers& all = *starting;
    Fibers::Fiber& mine = *all.running_;
#ifdef GIMBAL_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &all.main_bottom_, &all.main_size_);
#endif
    for (;;) {  // the stack is used again for the next body
      all.body_(all.self_, mine.index);
      mine.done = true;
      all.pause();
    }
  }
};
// The entry takes no arguments on either way of switching; resume() sets it before the first switch.
thread_local Fibers* FiberEntry::starting = nullptr;

Fibers::Fibers() = default;
Fibers::~Fibers() = default;

void Fibers::prepare(uint32_t i) {
  Fiber& f = *fibers_[i];
#ifdef GIMBAL_ASAN
  __asan_unpoison_memory_region(f.memory, kStackBytes);
#endif
#ifdef GIMBAL_TSAN
  if (f.tsan) __tsan_destroy_fiber(f.tsan);
  f.tsan = __tsan_create_fiber(0);
#endif
#ifdef GIMBAL_OWN_SWITCH
  auto* top = reinterpret_cast<void**>(f.memory + kStackBytes);
  *--top = nullptr;  // the return address of FiberEntry::run; and 16-byte alignment
  *--top = reinterpret_cast<void*>(&FiberEntry::run);
  for (int r = 0; r < 6; r++) *--top = nullptr;
  f.stack = top;
#else
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.memory;
  f.context.uc_stack.ss_size = kStackBytes;
  f.context.uc_link = nullptr;
  makecontext(&f.context, FiberEntry::run, 0);
#endif
  f.fake_stack = nullptr;
  f.done = true;
}

bool Fibers::start(uint32_t count, Body body, void* self) {
  body_ = body, self_ = self;
  while (fibers_.size() < count) {
    auto f = std::make_unique<Fiber>();
    void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    f->memory = static_cast<uint8_t*>(memory);
    mprotect(memory, size_t(sysconf(_SC_PAGESIZE)), PROT_NONE);
    f->index = uint32_t(fibers_.size());
    fibers_.push_back(std::move(f));
    prepare(uint32_t(fibers_.size() - 1));
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!fibers_[i]->done) prepare(i);
    fibers_[i]->done = false;
  }
  return true;
}

bool Fibers::resume(uint32_t i) {
  Fiber& f = *fibers_[i];
  running_ = &f;
  FiberEntry::starting = this;
#ifdef GIMBAL_ASAN
  void* fake = nullptr;
  auto page = size_t(sysconf(_SC_PAGESIZE));
  __sanitizer_start_switch_fiber(&fake, f.memory + page, kStackBytes - page);
#endif
#ifdef GIMBAL_TSAN
  main_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(f.tsan, 0);
#endif
#ifdef GIMBAL_OWN_SWITCH
  gimbal_switch_stack(&main_stack_, f.stack);
#else
  swapcontext(&f.back, &f.context);
#endif
#ifdef GIMBAL_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  running_ = nullptr;
  return f.done;
}

void Fibers::pause() {
  Fiber& f = *running_;
#ifdef GIMBAL_ASAN
  __sanitizer_start_switch_fiber(&f.fake_stack, main_bottom_, main_size_);
#endif
#ifdef GIMBAL_TSAN
  __tsan_switch_to_fiber(main_fiber_, 0);
#endif
#ifdef GIMBAL_OWN_SWITCH
  gimbal_switch_stack(&f.stack, main_stack_);
#else
  swapcontext(&f.context, &f.back);
#endif
#ifdef GIMBAL_ASAN
  __sanitizer_finish_switch_fiber(f.fake_stack, &main_bottom_, &main_size_);
#endif
}

}  // namespace gimbal::emulator
