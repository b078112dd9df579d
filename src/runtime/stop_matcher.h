// Ends a stream of text at a stop string, even when that string arrives in several pieces: text that may be
// its beginning is held back until this is decided.
//
// The stop string that is complete first in the stream ends the text; of several that end at the same byte,
// the longest. ("abcd" with the stops "abcd" and "bc" ends at "bc", leaving "a".) So the result does not
// depend on the division into pieces, and no output is ever retracted.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

// Usage error for an empty stop string, which would end every text before it begins.
Status validate_stops(std::span<const std::string> stops);

class StopMatcher {
 public:
  struct Output {
    std::string text;      // finalized text: never part of a stop string that ends the text
    bool stopped = false;  // a stop string is complete; whatever is pushed afterwards is ignored
    std::string which;     // that stop string, once stopped
  };

  // Empty stop strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  // Takes the next piece of text. Holds back fewer bytes than the longest stop string has. When pieces and
  // stop strings are whole characters of UTF-8, so is every text that comes out.
  Output push(std::string_view piece);

  // The text has ended without a stop string: returns the held-back rest (empty after a stop).
  std::string finish();

 private:
  // One stop string with the table and the state of Knuth, Morris and Pratt ("Fast pattern matching in
  // strings", 1977): each byte is compared a bounded number of times, even if the stop string repeats
  // itself.
  struct Stop {
    std::string text;
    std::vector<size_t> fallback;  // [n]: longest proper prefix of text that ends its first n bytes
    size_t matched = 0;            // longest prefix of text that ends the stream so far
  };
  static void advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
  std::string held_;  // as long as the largest `matched`
  bool stopped_ = false;
  std::string which_;
};

}  // namespace gimbal
