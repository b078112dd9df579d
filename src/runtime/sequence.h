// A sequence of inputs and the pages that hold the model's state for them. Sequences share the pages of a
// common beginning; a sequence that writes into a shared page first gets its own copy.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/state.h"
#include "runtime/inputs.h"
#include "runtime/page_pool.h"

namespace gimbal {

class SequencePool;

class Sequence {
 public:
  ~Sequence();  // returns its pages
  Sequence(const Sequence&) = delete;

  // The text, and its tokens: kNoToken for an embedding.
  const Inputs& inputs() const { return inputs_; }
  std::span<const int32_t> tokens() const { return inputs_.tokens(); }
  // The number of tokens() that the model's state covers; the next row has this position. Less than the
  // size of tokens() only after a truncate() that could not keep all.
  int computed() const { return computed_; }

  // Another sequence with the same tokens and pages. Errors: OutOfMemory if all sequences that the model
  // was loaded for are taken.
  Result<std::unique_ptr<Sequence>> fork() const;

  // Sets the scales of the model's adapters for this text (Inputs::adapters()). Errors: Usage while it holds
  // tokens, unless they were computed with the same scales.
  Status adapt(std::span<const float> scales);

  // Drops the tokens from `length` on; clamps `length` to [0, tokens().size()]. Returns computed():
  // less than `length` if the state cannot be restored there (a recurrent state returns to a
  // checkpoint; a window may have lost its beginning). The tokens between must then be computed
  // again.
  int truncate(int length);
  // The value that truncate(length) would return.
  int keeps(int length) const { return length < computed_ ? kept(std::max(0, length), false) : computed_; }

  // Its pages of a pool, without those that left the window and were returned to the pool.
  std::span<const int32_t> pages(size_t pool) const {
    return std::span(held_[pool].pages).subspan(held_[pool].first);
  }
  size_t first_page(size_t pool) const { return held_[pool].first; }

  // Saves the state at computed() for a later truncate(), in addition to the checkpoints at every
  // kCheckpointEvery positions. Only recurrent state needs it; replaces the oldest of kMaxCheckpoints.
  void checkpoint();
  // The same in one place apart from the checkpoints, replacing the previous mark: the state to return to
  // if the next rows are dropped. Needs RunOptions::drafts, which reserves a page for it.
  void mark();

 private:
  friend class SequencePool;
  static constexpr int32_t kNoPage = -1;
  struct Checkpoint {
    int position;
    int32_t page;
  };
  // Its pages of one pool.
  struct Held {
    std::vector<int32_t> pages;           // kNoPage: before the window, returned
    size_t first = 0;                     // index of the first page still held
    std::vector<Checkpoint> checkpoints;  // by rising position
    Checkpoint mark{-1, kNoPage};         // position < 0: none
  };

  explicit Sequence(SequencePool& pool) : pool_(pool) {}
  // The last position, at most this one, whose state still exists. `lost`: the recurrent state does not.
  int kept(int position, bool lost) const;
  void give_back(int position, bool lost = false);  // down to kept()

  SequencePool& pool_;
  Inputs inputs_;
  int computed_ = 0;
  std::vector<Held> held_;  // by pool
  int in_step_ = -1;        // index among the sequences of the step that is being prepared
};

// A copy on the devices before a step: `to` gets the contents of `from`, or zeros.
struct PageCopy {
  size_t pool;
  int32_t from, to;  // from < 0: zeros
};

// All sequences of a model. For one thread at a time. Only create() and fork() allocate.
class SequencePool {
 public:
  // A step has at most `batch` rows; a sequence at most `context` positions.
  SequencePool(std::vector<StatePool> pools, int sequences, int context, int batch);

  // Errors: OutOfMemory if `sequences` of them exist.
  Result<std::unique_ptr<Sequence>> create();
  bool owns(const Sequence& s) const { return &s.pool_ == this; }
  // Gives an empty sequence these inputs and pages for them, from page `first[pool]` on; the caller fills
  // the pages. Errors: Malformed if no sequence of this length can hold these pages; OutOfMemory. Then it
  // stays empty.
  Status adopt(Sequence&, const InputView&, std::span<const uint32_t> first);
  const std::vector<StatePool>& pools() const { return pools_; }
  int free_pages(size_t pool) const { return pages_[pool].free(); }
  // The number of pages, of a pool without a window, that a step with this many rows of the sequence would
  // take: new pages, and a copy of a shared page that it continues to write.
  int pages_wanted(const Sequence&, int rows, size_t pool) const;

  // ---- one step: begin(), add_row() for every row, then take_pages(), and commit() or roll_back()
  void begin();
  // Returns the sequence's index in the step. The row's position is position_of(sequence).
  int add_row(Sequence&);
  int position_of(const Sequence& s) const {
    return s.computed_ + (s.in_step_ < 0 ? 0 : growth_[size_t(s.in_step_)].rows);
  }
  int sequences_in_step() const { return int(growth_.size()); }
  // Takes pages for all rows. Errors: OutOfMemory if too few are free; then nothing has changed.
  Status take_pages();
  std::span<const PageCopy> copies() const { return copies_; }
  // The pages of the step's sequence `index` in a pool: at most `table` entries are used.
  std::span<const int32_t> pages(int index, size_t pool) const {
    return growth_[size_t(index)].sequence->held_[pool].pages;
  }
  void commit(std::span<const InputItem> of_rows);  // in the order of add_row()
  // Undoes take_pages(). `begun`: ops may have run, so a recurrent state is invalid.
  void roll_back(bool begun);

 private:
  friend class Sequence;
  struct Growth {
    Sequence* sequence;
    int rows;
  };
  struct Replaced {  // the page of copies_[i]: its owner and index
    Sequence* sequence;
    size_t index;
  };
  bool take_pages(Sequence&, int rows, size_t pool);
  bool unshare(Sequence&, size_t pool, size_t index);
  void leave_window(Sequence&, size_t pool);
  std::unique_ptr<Sequence> add();

  const std::vector<StatePool> pools_;
  const int sequences_, context_;
  int live_ = 0;
  std::vector<PagePool> pages_;  // by pool
  std::vector<Growth> growth_;   // of the step
  std::vector<int32_t> row_of_;  // by row of the step: its sequence's index
  std::vector<PageCopy> copies_;
  std::vector<Replaced> replaced_;  // by copy
};

}  // namespace gimbal
