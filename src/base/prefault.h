// Brings pages of mapped files into memory before they are used. Its threads wait for the disk while the
// program does other work. Unlike an access, the call that it makes gives an error where a file was cut
// short.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"

namespace gimbal {

class Prefault {
 public:
  // Makes the pages of a range present: 0, or the system's number of an error. Begins at a page.
  using Populate = std::function<int(Bytes)>;
  static int populate(Bytes);  // by the system: Linux since 5.14

  struct Report {
    uint64_t bytes = 0, wanted = 0;  // made present; of all ranges, in whole pages
    unsigned threads = 0;
    double seconds = 0;                     // from the start to the end of the last thread
    std::string stopped;                    // the reason where bytes < wanted
    const std::byte* unreadable = nullptr;  // begin of a piece that the file lacks, or the disk cannot read
    // "763 MB in 35 ms by 2 threads", and the reason if that is not all.
    std::string text() const;
  };

  // Starts threads, as many as there is work for and at most `threads`. The ranges are parts of mappings,
  // which outlive the object.
  Prefault(std::vector<Bytes> ranges, unsigned threads, Populate = populate);
  ~Prefault();  // cancels
  Prefault(const Prefault&) = delete;

  // Waits until all is present, or the first error.
  const Report& finish();
  // Each thread ends with its present piece.
  const Report& cancel();

 private:
  void run();
  void stop(int error, Bytes piece);

  const Populate populate_;
  const double begin_;
  std::vector<Bytes> pieces_;
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards report_ while threads run
  Report report_;
  std::vector<std::thread> threads_;
};

}  // namespace gimbal
