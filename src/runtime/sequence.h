// A sequence of inputs and the pages that hold what the model remembers of them. Sequences share the pages of
// a common beginning; who writes into a shared page first gets a copy of it.
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
  ~Sequence();  // gives its pages back
  Sequence(const Sequence&) = delete;

  // The text, and its tokens: kNoToken for an embedding.
  const Inputs& inputs() const { return inputs_; }
  std::span<const int32_t> tokens() const { return inputs_.tokens(); }
  // The first of tokens() that the model remembers; the next row of the sequence has this position. Fewer
  // than tokens() only after a truncate() that could not keep all.
  int computed() const { return computed_; }

  // Another sequence with the same tokens and pages. Errors: OutOfMemory when as many sequences are there as
  // the model was loaded for.
  Result<std::unique_ptr<Sequence>> fork() const;

  // Forgets the tokens from `length` on; values outside [0, tokens().size()] are taken for the nearest
  // inside. Returns computed(): less than `length` where the model's memory cannot be taken back to there (a
  // recurrent state goes back to a checkpoint; a window may have lost its beginning). Those tokens must be
  // computed anew.
  int truncate(int length);
  // What truncate(length) would answer.
  int keeps(int length) const { return length < computed_ ? kept(std::max(0, length), false) : computed_; }

  // What it holds of a pool: its pages, of which those before the first one kept were given back (a window).
  std::span<const int32_t> pages(size_t pool) const {
    return std::span(held_[pool].pages).subspan(held_[pool].first);
  }
  size_t first_page(size_t pool) const { return held_[pool].first; }

  // Remembers the state at computed() to go back to, beside those that are taken every kCheckpointEvery
  // positions. Only recurrent state needs it; the oldest of kMaxCheckpoints gives way.
  void checkpoint();
  // The same beside the checkpoints, in place of the mark before: a state to go back to in a moment, when the
  // next rows are not kept. Needs RunOptions::drafts, for it has a page of its own.
  void mark();

 private:
  friend class SequencePool;
  static constexpr int32_t kNoPage = -1;
  struct Checkpoint {
    int position;
    int32_t page;
  };
  // What it holds of one pool.
  struct Held {
    std::vector<int32_t> pages;           // kNoPage: behind the window, given back
    size_t first = 0;                     // index of the first that was not given back
    std::vector<Checkpoint> checkpoints;  // by rising position
    Checkpoint mark{-1, kNoPage};         // position < 0: there is none
  };

  explicit Sequence(SequencePool& pool) : pool_(pool) {}
  // The last position, at most this one, whose memory there still is. `lost`: the recurrent state is not.
  int kept(int position, bool lost) const;
  void give_back(int position, bool lost = false);  // down to what kept() says

  SequencePool& pool_;
  Inputs inputs_;
  int computed_ = 0;
  std::vector<Held> held_;  // by pool
  int in_step_ = -1;        // index among the sequences of the step that is being prepared
};

// What must be done on the devices before a step: `to` gets the contents of `from`, or zeros.
struct PageCopy {
  size_t pool;
  int32_t from, to;  // from < 0: zeros
};

// All sequences of a model. For one thread at a time. Nothing is allocated but by create() and fork().
class SequencePool {
 public:
  // A step has at most `batch` rows; a sequence at most `context` positions.
  SequencePool(std::vector<StatePool> pools, int sequences, int context, int batch);

  // Errors: OutOfMemory when there are as many as `sequences`.
  Result<std::unique_ptr<Sequence>> create();
  bool owns(const Sequence& s) const { return &s.pool_ == this; }
  // Gives an empty sequence these inputs and pages for them, from page `first[pool]` on; the caller brings
  // what lies in the pages. Errors: Malformed when no sequence of so many tokens holds that; OutOfMemory.
  // Then it stays empty.
  Status adopt(Sequence&, const InputView&, std::span<const uint32_t> first);
  const std::vector<StatePool>& pools() const { return pools_; }
  int free_pages(size_t pool) const { return pages_[pool].free(); }
  // How many pages of a pool without a window a step with so many rows of the sequence would take: new ones,
  // and a copy of one that it shares and goes on in.
  int pages_wanted(const Sequence&, int rows, size_t pool) const;

  // ---- one step: begin(), add_row() for every row, then take_pages(), and commit() or roll_back()
  void begin();
  // Gives the sequence's index in the step. The row's position is position_of(sequence).
  int add_row(Sequence&);
  int position_of(const Sequence& s) const {
    return s.computed_ + (s.in_step_ < 0 ? 0 : growth_[size_t(s.in_step_)].rows);
  }
  int sequences_in_step() const { return int(growth_.size()); }
  // Pages for all rows. Errors: OutOfMemory when too few are free; then nothing has changed.
  Status take_pages();
  std::span<const PageCopy> copies() const { return copies_; }
  // The pages of the step's sequence `index` in a pool: `table` entries at most; others do not matter.
  std::span<const int32_t> pages(int index, size_t pool) const {
    return growth_[size_t(index)].sequence->held_[pool].pages;
  }
  void commit(std::span<const InputItem> of_rows);  // as they were added
  // Undoes take_pages(). `begun`: ops may have run; a recurrent state is then not to be trusted.
  void roll_back(bool begun);

 private:
  friend class Sequence;
  struct Growth {
    Sequence* sequence;
    int rows;
  };
  struct Replaced {  // the page of copies_[i], and whose
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
