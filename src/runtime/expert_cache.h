// The weights of a stage whose experts are read from a packed file as they are chosen. Before a part of a
// step, provide() reads the chosen experts that are not in memory, in place of those unused for the longest
// time. The ops find each at its place in the file's address range, so kernels and bits are the same.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/model_plan.h"

namespace gimbal {

class ExpertCache {
 public:
  // Reserves addresses for the stage's packed file (use_packed()), and reads the weights that stay in memory.
  // Errors: those of FilePages.
  static Result<std::unique_ptr<ExpertCache>> open(const Stage&);

  Bytes bytes() const { return pages_->bytes(); }  // for Device::adopt()

  // Space for the routes of one part, before provide(): `rows` rows of twice the chosen experts.
  std::span<float> routes(int group, size_t rows);
  // Makes the experts in routes() valid until the next call. Errors: those of FilePages::hold(); none of the
  // experts that this call wanted to read is in memory then.
  Status provide(int group, size_t rows);

  struct Counts {
    uint64_t wanted = 0, read = 0, dropped = 0;       // experts of a part
    uint64_t bytes_read = 0;                          // from the file, with the other weights
    uint64_t bytes_in_memory = 0, bytes_at_most = 0;  // now; since open()
  };
  Counts counts() const;
  bool direct() const { return pages_->direct(); }

 private:
  struct Links {  // of experts in memory, by rising time of the last use
    int32_t before = -1, after = -1;
  };
  explicit ExpertCache(const Stage& stage);
  void append(int32_t unit);
  void remove(int32_t unit);
  Status read(int32_t unit);
  void drop(int32_t unit);
  void ranges_of(int32_t unit);

  const Stage& stage_;
  std::unique_ptr<FilePages> pages_;
  std::vector<int32_t> first_unit_;  // of each group; a unit is an expert of a group
  std::vector<int32_t> group_;       // of each unit
  std::vector<Links> links_;         // by unit; the last entry joins both ends
  std::vector<bool> in_memory_;      // by unit
  std::vector<uint64_t> wanted_at_;  // by unit: the call that wanted it last
  std::vector<int32_t> missing_;     // of this call
  std::vector<FilePages::Range> ranges_;
  std::vector<float> routes_;
  uint64_t calls_ = 0, bytes_ = 0;  // bytes_: of the experts in memory
  Counts counts_;
};

}  // namespace gimbal
