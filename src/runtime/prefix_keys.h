// The keys of a text's pages: a chain of SHA-256, so that a key covers all inputs up to the page's end. It
// begins with everything else that decides the bits of a page: model, arithmetic, cache format, adapters.
#pragma once
#include <string_view>
#include <vector>

#include "runtime/inputs.h"
#include "store/page_file.h"

namespace gimbal {

class PrefixKeys {
 public:
  // `root`: of all texts of a model with these settings. `owner`: texts of different owners share no page.
  PrefixKeys(const PageKey& root, std::span<const float> adapters, std::string_view owner);

  int pages() const { return int(chain_.size()) - 1; }
  // Adds keys until there are `pages`. `text`: at least so long; its beginning is that of the calls before.
  void extend(const InputView& text, int pages);
  void truncate(int pages) { chain_.resize(size_t(std::min(pages, this->pages())) + 1); }
  // Of the page with this index in a pool; of a recurrent pool, the state behind that page.
  PageKey key(int page, size_t pool) const;

 private:
  std::vector<PageKey> chain_;  // before the first page, and behind each one
};

}  // namespace gimbal
