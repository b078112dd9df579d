// Building the tree: from sorted texts, one level after the other, so that the children of a node lie
// together.
#include "tokenizer/prefix_tree.h"

namespace gimbal {

PrefixTree::PrefixTree(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    const int order = a.text.compare(b.text);
    return order ? order < 0 : a.id < b.id;
  });
  struct Range {
    size_t begin, end;  // entries that begin with the bytes that lead to a node
  };
  std::vector<Range> level{{0, entries.size()}}, next;
  nodes_.emplace_back();
  size_t node = 0;
  for (size_t depth = 0; !level.empty(); ++depth, level.swap(next)) {
    next.clear();
    for (Range range : level) {
      // Entries that end here come first.
      if (range.begin < range.end && entries[range.begin].text.size() == depth) {
        if (depth > 0) nodes_[node].id = entries[range.begin].id;
        while (range.begin < range.end && entries[range.begin].text.size() == depth) ++range.begin;
      }
      nodes_[node].first_child = uint32_t(nodes_.size());
      for (size_t at = range.begin; at < range.end;) {
        const uint8_t byte = uint8_t(entries[at].text[depth]);
        const size_t begin = at;
        while (at < range.end && uint8_t(entries[at].text[depth]) == byte) ++at;
        next.push_back({begin, at});
        nodes_.emplace_back().byte = byte;
        ++nodes_[node].children;
      }
      ++node;
    }
  }
}

}  // namespace gimbal
