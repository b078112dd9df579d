// Places of pictures in messages. A chat template sees a message's pictures as marks in its text; behind the
// template, each mark is a place for the picture's rows. The beginning of a mark is random for each request,
// so that no user's text can contain one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

// The beginning of a request's marks: random bits of the system.
std::string new_picture_marks();

// The mark of picture `index`. `begin`: of all marks of the request.
std::string picture_mark(std::string_view begin, size_t index);

struct PictureMark {
  size_t begin, end;  // bytes of the text
  int picture;
};
// The marks in a text, in its order. Errors: Usage unless each of the pictures is there exactly once.
Result<std::vector<PictureMark>> find_picture_marks(std::string_view text, std::string_view begin,
                                                    size_t pictures);

// The word in place of a mark in texts for people, and in prompts of the command line.
inline constexpr std::string_view kPictureWord = "<__media__>";

}  // namespace gimbal
