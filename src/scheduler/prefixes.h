// What was computed for earlier requests, kept for later ones that begin alike. Sequences share the pages of
// a common beginning, so all of them together are a tree of pages, in which each branch is here once. When
// memory is wanted, the end of what was used longest ago goes first, a page at a time.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/sequence.h"

namespace gimbal {

// Of one thread.
class Prefixes {
 public:
  // Beside it as the most recent. Drops what says no more than another one.
  void keep(std::unique_ptr<Sequence>);
  // The one that would keep the most of the text, and how many tokens; nullptr: none.
  struct Found {
    Sequence* sequence = nullptr;
    int tokens = 0;
  };
  Found find(const InputView& text) const;
  void used(const Sequence*);  // is the most recent from now on
  std::unique_ptr<Sequence> take(const Sequence*);

  // Forgets a page's tokens at the end of what was used longest ago; all of it where it cannot be shortened.
  // Pages that others hold, too, stay. False: there is nothing. `but`: what must stay.
  bool shrink(const Sequence* but = nullptr);
  // Drops what was used longest ago. False: there is nothing else.
  bool drop(const Sequence* but);
  void clear() { kept_.clear(); }
  int count() const { return int(kept_.size()); }

 private:
  size_t oldest(const Sequence* but) const;  // kept_.size(): none

  std::vector<std::unique_ptr<Sequence>> kept_;  // the most recent last
};

}  // namespace gimbal
