// Serializes fork() with the dynamic loader. glibc makes malloc and stdio safe across fork(), but neither the
// loader nor the list of destructors of a library (__cxa_atexit): a child forked while another thread is
// inside dlopen() or dlclose() inherits half-changed loader lists and a lock held for ever, so its own
// dlopen() hangs or fails. discovery/probe.cpp forks children that load libraries.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace gimbal {

// Hold it while loading or unloading a library or looking up symbols (dlsym,
// dl_iterate_phdr), and while calling backend entries that do so or whose driver does
// (entry, device_count, open, kernels, close). Hold it briefly; it is not recursive.
// It cannot cover a thread's first use of a plugin's thread-local variable.
class LoaderLock {
 public:
  LoaderLock() {
    // A mutex is not fair: threads that load again and again would starve a fork.
    for (mutex_.lock(); const int forks = waiting_forks_; mutex_.lock()) {
      mutex_.unlock();
      waiting_forks_.wait(forks);
    }
  }
  ~LoaderLock() { mutex_.unlock(); }
  LoaderLock(const LoaderLock&) = delete;

  // Forks while no thread holds the lock, before all waiting threads. The lock is free in the child.
  static pid_t fork() {
    waiting_forks_++;
    mutex_.lock();
    const pid_t pid = ::fork();
    if (pid == 0) waiting_forks_ = 0;  // the other waiting threads do not exist in the child
    else waiting_forks_--;
    mutex_.unlock();
    waiting_forks_.notify_all();
    return pid;
  }

 private:
  inline static std::mutex mutex_;
  inline static std::atomic<int> waiting_forks_{0};
};

}  // namespace gimbal
