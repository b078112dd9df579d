// Keeps the sequences of earlier requests for later ones with the same beginning. Sequences share the pages
// of a common beginning, so together they form a tree of pages that holds each branch once. Under memory
// pressure, the least recently used sequence loses its end first, a page at a time.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/sequence.h"

namespace gimbal {

// For one thread.
class PrefixCache {
 public:
  // Inserts it as most recently used. Drops entries that are prefixes of another.
  void keep(std::unique_ptr<Sequence>);
  // The sequence with the longest usable prefix of the text, and its tokens; nullptr: none.
  struct Found {
    Sequence* sequence = nullptr;
    int tokens = 0;
  };
  Found find(const InputView& text) const;
  void used(const Sequence*);  // marks it as most recently used
  std::unique_ptr<Sequence> take(const Sequence*);

  // Drops the last page of the least recently used sequence; all of it if it cannot be shortened. Pages
  // with other holders stay. False: nothing to drop. `but`: a sequence to keep.
  bool shrink(const Sequence* but = nullptr);
  // Drops the least recently used sequence except `but`. False: there is no other.
  bool drop(const Sequence* but);
  void clear() { kept_.clear(); }
  int count() const { return int(kept_.size()); }

 private:
  size_t oldest(const Sequence* but) const;  // kept_.size(): none

  std::vector<std::unique_ptr<Sequence>> kept_;  // most recently used last
};

}  // namespace gimbal
