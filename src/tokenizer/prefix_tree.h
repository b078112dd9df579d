// Finds all tokens that are a prefix of a text, byte by byte in a tree. For algorithms that need them at
// every position of a text.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal {

class PrefixTree {
 public:
  struct Entry {
    std::string_view text;
    Token id;
  };
  // Ignores empty texts; of equal texts the lowest id counts.
  explicit PrefixTree(std::vector<Entry> entries);

  // each(bytes, id) for every entry that `text` begins with, the shortest first.
  template <class Each>
  void each(std::string_view text, Each&& each) const;

  // The longest of them; 0 bytes and -1 if there is none.
  struct Longest {
    size_t bytes = 0;
    Token id = -1;
  };
  Longest longest(std::string_view text) const {
    Longest result;
    each(text, [&](size_t bytes, Token id) { result = {bytes, id}; });
    return result;
  }

 private:
  struct Node {
    uint32_t first_child = 0;  // the children of a node follow each other, in order of their bytes
    Token id = -1;             // -1: a prefix only
    uint16_t children = 0;
    uint8_t byte = 0;
  };
  std::vector<Node> nodes_;  // the root is the first
};

template <class Each>
void PrefixTree::each(std::string_view text, Each&& each) const {
  const Node* node = nodes_.data();
  for (size_t i = 0; i < text.size(); ++i) {
    const Node* begin = nodes_.data() + node->first_child;
    const Node* end = begin + node->children;
    const uint8_t byte = uint8_t(text[i]);
    node = std::lower_bound(begin, end, byte, [](const Node& n, uint8_t b) { return n.byte < b; });
    if (node == end || node->byte != byte) return;
    if (node->id >= 0) each(i + 1, node->id);
  }
}

}  // namespace gimbal
