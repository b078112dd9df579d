// The protocol between a front and its workers, neither of which trusts the other: the lines of a stream
// (src/workers/line_cursor.h) and the rows that a message names (src/runtime/row_range.h). Sums of the
// numbers in messages: proofs/plans.cpp.
#include "checker.h"
#include "runtime/row_range.h"
#include "workers/line_cursor.h"

using namespace gimbal;

// A stream of four bytes of any content that arrives in two pieces of any size: each line is returned once
// and whole, in order, and no byte outside of the stream is read.
extern "C" void lines_are_whole() {
  constexpr size_t kBytes = 4;
  char text[kBytes];
  size_t feeds = 0;
  for (size_t i = 0; i < kBytes; i++) {
    text[i] = nondet_char();
    if (text[i] == '\n') feeds = feeds + 1;
  }
  LineCursor cursor;
  size_t begin = 0, size = 0, lines = 0, expected = 0;  // the channel holds text[begin, size)
  for (int piece = 0; piece < 2; piece++) {
    begin += cursor.forget();
    const size_t more = nondet_ulong();
    ASSUME(more <= kBytes - size);
    size = piece == 1 ? kBytes : size + more;
    for (size_t i = 0; i <= kBytes; i++) {
      size_t feed = cursor.search_from();
      while (feed < size - begin && text[begin + feed] != '\n') feed = feed + 1;
      const auto line = cursor.next(feed, size - begin);
      if (!line) break;
      CLAIM(line->begin <= line->end && line->end < size - begin);
      CLAIM(begin + line->begin == expected && text[begin + line->end] == '\n');
      for (size_t k = line->begin; k < line->end; k++) CLAIM(text[begin + k] != '\n');
      expected = begin + line->end + 1;
      lines = lines + 1;
    }
    CLAIM(cursor.unread(size - begin) == size - expected);
  }
  CLAIM(lines == feeds);
}

// Rows and positions of a span are valid, and what readers compute from them (runtime/inputs.cpp) is an int.
extern "C" void spans_are_inside() {
  const int position = nondet_int(), first = nondet_int(), rows = nondet_int(), all = nondet_int();
  ASSUME(all >= 0);
  if (!is_row_range(position, first, rows, all)) return;
  CLAIM(position + rows > position && first + rows <= all);
  const int at = nondet_int();
  ASSUME(at >= position && at < position + rows);
  const int row = at - position + first;
  CLAIM(row >= 0 && row < all);
}
