// Keeps fork() and the dynamic loader apart. glibc makes malloc and stdio ready for a fork(), but not the
// loader: a child that is forked while another thread is inside dlopen() or dlclose() has the loader's lists
// half changed and their lock held for ever, so that its own dlopen() waits or fails. discovery/probe.cpp
// forks children that load libraries.
#pragma once
#include <mutex>

namespace gimbal {

// Held by whoever loads or unloads a library, calls a backend where its driver does so (device_count, open,
// close), or forks. Briefly, and never by a thread that has it already. What the thread that forked has
// locked, its child can unlock.
class LoaderLock {
 public:
  LoaderLock() : lock_(mutex_) {}

 private:
  inline static std::mutex mutex_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace gimbal
