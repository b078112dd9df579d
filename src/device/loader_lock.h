// Keeps fork() and the dynamic loader apart. glibc makes malloc and stdio ready for a fork(), but neither the
// loader nor the list of what is destroyed with a library (__cxa_atexit): a child that is forked while
// another thread is inside dlopen() or dlclose() has the loader's lists half changed and their lock held for
// ever, so that its own dlopen() waits or fails. discovery/probe.cpp forks children that load libraries.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace gimbal {

// Held by whoever loads or unloads a library or looks something up in one (dlsym, dl_iterate_phdr), or calls
// a backend where it or its driver does so (entry, device_count, open, kernels, close). Briefly, and never by
// a thread that has it already. What it cannot keep away: a thread's first use of a plugin's thread-local
// variable.
class LoaderLock {
 public:
  LoaderLock() {
    // A mutex is not fair: threads that load again and again would keep a fork out.
    for (mutex_.lock(); const int forks = waiting_forks_; mutex_.lock()) {
      mutex_.unlock();
      waiting_forks_.wait(forks);
    }
  }
  ~LoaderLock() { mutex_.unlock(); }
  LoaderLock(const LoaderLock&) = delete;

  // fork() while no thread holds the lock; before all that wait for it. In the child, it is free.
  static pid_t fork() {
    waiting_forks_++;
    mutex_.lock();
    const pid_t pid = ::fork();
    if (pid == 0) waiting_forks_ = 0;  // the other threads that counted here do not exist
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
