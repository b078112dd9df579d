#include "chat/picture_marks.h"

#include <charconv>
#include <random>

#include "base/format.h"

namespace gimbal {

std::string new_picture_marks() {
  std::random_device system;
  std::string mark = "<__media_";
  for (int i = 0; i < 4; i++) mark += format("{:08x}", system());
  return mark;
}

std::string picture_mark(std::string_view begin, size_t index) { return format("{}_{}__>", begin, index); }

Result<std::vector<PictureMark>> find_picture_marks(std::string_view text, std::string_view begin,
                                                    size_t pictures) {
  std::vector<PictureMark> found;
  if (begin.empty()) return found;
  std::vector<bool> seen(pictures);
  for (size_t at = 0; (at = text.find(begin, at)) != text.npos;) {
    size_t index = 0;
    const char* number = text.data() + at + begin.size() + 1;
    const char* end = text.data() + text.size();
    if (number < end) std::from_chars(number, end, index);
    const std::string whole = picture_mark(begin, index);
    if (index >= pictures || text.substr(at, whole.size()) != whole || seen[index])
      return Error{Code::Usage, "the model's chat template changes the places of pictures",
                   "ask without pictures"};
    seen[index] = true;
    found.push_back({at, at + whole.size(), int(index)});
    at += whole.size();
  }
  if (found.size() != pictures)
    return Error{
        Code::Usage,
        format("the model's chat template leaves out {} of {} pictures", pictures - found.size(), pictures),
        "ask without them"};
  return found;
}

}  // namespace gimbal
