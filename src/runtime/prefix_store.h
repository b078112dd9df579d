// The prefix store of a loaded model: reads pages of earlier texts from a PageStore into new sequences, and
// offers it the pages of running ones. A page has the same bytes on every device, for every batch and split,
// so it does not matter which process computed it. docs/prefix-store.md has the user's view.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "runtime/model.h"
#include "runtime/prefix_keys.h"
#include "store/page_store.h"

namespace gimbal {

// One text and its pages in the store. Belongs to one sequence.
class StoredText {
 public:
  // Also keeps the recurrent state at this position, a multiple of kPagePositions: the end of a prompt.
  void keep_state_at(int position) { keep_at_ = position; }
  int keeps_state_at() const { return keep_at_; }
  // The text continues otherwise from `position` on.
  void truncate(int position);
  int tokens() const { return tokens_; }                       // that were read from the store
  const std::string& last_page() const { return last_page_; }  // of these, the name of the last page

 private:
  friend class PrefixStore;
  explicit StoredText(PrefixKeys keys) : keys_(std::move(keys)) {}

  // Recurrent states of one position, by pool, that are written if no later one replaces them.
  struct States {
    int position = 0;
    std::vector<std::vector<std::byte>> bytes;
  };

  PrefixKeys keys_;
  int offered_ = 0;  // pages
  int keep_at_ = 0;
  int state_at_ = 0;  // position of the last recurrent state in the store
  States held_;
  int tokens_ = 0;
  std::string last_page_;
};

// For the thread that computes the model.
class PrefixStore {
 public:
  // `identity`: names everything outside the plan that decides bits. Errors: Unsupported, with the reason, if
  // pages of this model cannot be shared: fast kernels, an encoder, a device with another layout of caches;
  // the devices'.
  static Result<std::unique_ptr<PrefixStore>> create(std::shared_ptr<PageStore> pages,
                                                     std::string_view identity, const Model&);

  // A new text under these scales of the model's adapters (Inputs::adapters()). `owner`: see PrefixKeys.
  StoredText text(std::span<const float> adapters, std::string_view owner = {}) const;
  // Whether another loading of the same model can use it, after the loss of a device. Errors: as create().
  Status fits(const Model&) const;

  // The longest prefix of `wanted` that the store seems to have, in tokens: a multiple of kPagePositions.
  int find(const StoredText&, const InputView& wanted) const;
  // Reads it into an empty sequence; returns its tokens. Damaged pages are deleted and noted, and the prefix
  // before them is used. Errors: OutOfMemory if too few pages of the cache are free; the device's. Then the
  // sequence is empty.
  Result<int> restore(Model&, Sequence&, const InputView& wanted, StoredText&);
  // Copies the sequence's whole pages that the store lacks, for the writing thread. Between two steps, before
  // the sequence drops or writes over anything.
  void offer(Model&, const Sequence&, StoredText&);
  // After the text's last step: offers its end, and marks its pages as used.
  void finish(Model&, const Sequence&, StoredText&);
  // The last step computed `rows` rows in `seconds`: the value of pages, for statistics.
  void took(int rows, double seconds);

  bool has_states() const { return has_states_; }  // a recurrent pool
  PageStore& pages() { return *pages_; }

 private:
  struct Page {
    size_t pool;
    int index;       // in the text; of a recurrent state: of the page before it
    int32_t number;  // on the device
    PageKey key;
  };
  PrefixStore(std::shared_ptr<PageStore> pages, PageKey root, std::vector<StatePool> pools,
              std::vector<float> adapters);
  int first_page(size_t pool, int position) const;
  int find(PrefixKeys&, const InputView& wanted) const;
  Result<std::optional<int>> fill(Model&, const std::vector<Page>&, double& seconds);
  void put(Model&, size_t pool, int32_t number, const PageKey&);
  void offer_states(Model&, const Sequence&, StoredText&);
  uint64_t microseconds_of_page() const;

  const std::shared_ptr<PageStore> pages_;
  const PageKey root_;
  const std::vector<StatePool> pools_;
  const std::vector<float> adapters_;  // of texts that have none of their own
  bool has_states_ = false;
  double seconds_per_row_ = 0;  // of prompts
};

}  // namespace gimbal
