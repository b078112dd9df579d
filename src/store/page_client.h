// The pages of a folder that another process has (page_server.h), for a process that may open no files.
#pragma once
#include <memory>
#include <mutex>

#include "store/page_place.h"

namespace gimbal {

class PageClient final : public PagePlace {
 public:
  // Two sockets to servers of the same folder, which it closes: a page that is written on one does not delay
  // those that are read by the other.
  PageClient(int reading, int writing);
  ~PageClient() override;

  bool has(const PageKey&) const override;
  Result<uint64_t> read(const PageKey&, std::span<std::byte> content) override;
  Status write(const PageKey&, Bytes content, uint64_t microseconds) override;
  void used(std::span<const PageKey>) override;
  void count(const PageStoreNumbers&) override;
  // Known to the other process alone.
  uint64_t bytes() const override { return 0; }
  uint64_t evicted() const override { return 0; }

 private:
  struct Line {
    explicit Line(int s) : socket(s) {}
    std::mutex mutex;
    const int socket;
  };
  mutable Line reading_, writing_;
};

}  // namespace gimbal
