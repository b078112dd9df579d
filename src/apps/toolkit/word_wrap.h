// Breaks running text between words at the edge of a terminal.
#pragma once
#include <string>
#include <string_view>

namespace gimbal {

// The columns of stdout's terminal; 0 if it is none or does not tell.
int terminal_columns();

// The columns that a terminal gives this text: 2 for wide characters of East Asia and emoji, 0 for marks that
// join the character before.
int columns_of(std::string_view text);

// Takes a text in pieces and gives it out again, with a line break in place of the space before a word that
// would not fit. Holds the last word until its end is known. Lines inside ``` fences stay as they are, and so
// do words longer than a line.
class WordWrap {
 public:
  // 0 columns: gives everything out as it comes.
  explicit WordWrap(int columns) : columns_(columns) {}
  std::string push(std::string_view text);
  std::string finish();  // the word that it holds

 private:
  void end_word(std::string& out);

  int columns_;
  int column_ = 0;      // of the line given out
  std::string spaces_;  // before the word
  std::string word_;
  std::string cut_;    // bytes of a character that has not arrived whole
  bool code_ = false;  // between ``` fences
};

}  // namespace gimbal
